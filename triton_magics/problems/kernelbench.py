"""KernelBench problems: a module with `Model`, `get_inputs` and `get_init_inputs`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from triton_magics.problems.draft import Draft

TOLERANCE = {"rtol": 1e-2, "atol": 1e-2}  # of the collection, in float32
_NEEDED = ("Model", "get_inputs")
_BATCH = ("batch", "n_samples")
_MAX_DIMS = 5
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
}


def is_kernelbench(tree: ast.Module) -> bool:
    """Return whether a module defines what a problem of KernelBench has."""
    names = {getattr(node, "name", "") for node in tree.body}
    return names.issuperset(_NEEDED)


def draft_kernelbench(name: str, source: str, tree: ast.Module) -> Draft:
    """Return the draft of a problem's module."""
    dims = find_dims(tree)
    return Draft(
        name=name,
        collection="KernelBench",
        source=source,
        setup=(
            "from triton_magics.problems.child.model_op import ModelProblem",
            "_problem = ModelProblem(globals(), dims={dims}, training={training}, names={names})",
        ),
        dims=dims,
        sizes={"given": tuple(dims.values())} if dims else {"given": (1,)},
        batch=next((d for d in dims if d.lower().startswith(_BATCH)), None),
        tolerance=TOLERANCE,
    )


def find_dims(tree: ast.Module) -> dict[str, int]:
    """Return the whole numbers of a module that only the body of `get_inputs` reads.

    The model does not depend on them, so that they can have other values; at most five, in the
    order in which `get_inputs` reads them.
    """
    numbers = dict(_numbers(tree))
    loads = Counter(
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )
    function = next(
        n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_inputs"
    )
    reads = [
        node.id
        for node in _in_order(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    ]
    inside = Counter(reads)
    free = [n for n in dict.fromkeys(reads) if n in numbers and loads[n] == inside[n]]
    return {name: numbers[name] for name in free[:_MAX_DIMS]}


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        yield from _in_order(child)


def _numbers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the module's names of whole numbers from 1; a name that is set twice is none."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    counts = Counter(t.id for n in assigned for t in n.targets if isinstance(t, ast.Name))
    for node in assigned:
        target, value = node.targets[0], _evaluate(node.value)
        if isinstance(target, ast.Name) and counts[target.id] == 1 and value and value >= 1:
            yield target.id, value


def _evaluate(node: ast.expr) -> int | None:
    """Return the value of a whole number or of a product, sum or difference of them."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left), _evaluate(node.right)
        if left is not None and right:
            return _OPERATORS[type(node.op)](left, right)
    return None
