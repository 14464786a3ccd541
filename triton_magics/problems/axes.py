"""Axes of a definition: constant, variable, or an expression of others. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triton_magics.errors import BadValue

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a // b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def variable_axes(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the axes that a workload gives, in their order."""
    return tuple(k for k, axis in definition["axes"].items() if axis["type"] == "var")


def axis_values(definition: Mapping[str, Any], shape: Sequence[int]) -> dict[str, int]:
    """Return the value of every axis at a shape, which gives the variable ones.

    Raises:
        BadValue: another number of axes, or an expression that can't be computed.
    """
    names = variable_axes(definition)
    values = dict(zip(names, shape, strict=False))
    if len(shape) != max(len(names), 1):
        raise BadValue(f"the shape {tuple(shape)} does not give {', '.join(names)}")
    for name, axis in definition["axes"].items():
        if axis["type"] == "const":
            values[name] = axis["value"]
    for name, axis in definition["axes"].items():
        if axis["type"] == "expr":
            values[name] = evaluate_axis(axis["expression"], values)
    return values


def evaluate_axis(expression: str, values: Mapping[str, int]) -> int:
    """Return the value of an axis: whole numbers, names, + - * / // % and parentheses.

    Raises:
        BadValue: it has anything else, or a name that is no axis.
    """
    try:
        return _evaluate(ast.parse(expression, mode="eval").body, values)
    except (SyntaxError, KeyError, ZeroDivisionError, TypeError) as error:
        raise BadValue(f"the axis {expression!r} can't be computed: {error!r}") from None


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _evaluate(node.operand, values)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left, values), _evaluate(node.right, values)
        return _OPERATORS[type(node.op)](left, right)
    raise TypeError(ast.unparse(node))


def scalar_values(workloads: Sequence[Any], axes: Mapping[str, int]) -> dict[str, float]:
    """Return the scalars of the workload with these axes, else of the first one."""
    inner = [w.get("workload", w) for w in workloads]
    same = [w for w in inner if all(axes.get(k) == v for k, v in w["axes"].items())]
    chosen = (same or inner)[:1]
    return {
        name: spec["value"]
        for workload in chosen
        for name, spec in workload["inputs"].items()
        if spec["type"] == "scalar"
    }
