"""Ops from an IO contract and a reference: the cell of `%%triton_io` as the text of an op."""

from __future__ import annotations

import ast
import builtins

from triton_magics.errors import BadContract, BadKernelSource
from triton_magics.io_contract import IOContract, read_contract
from triton_magics.model import source_lines
from triton_magics.problems.draft import MARK

_MODULES = {"torch": "import torch", "F": "import torch.nn.functional as F", "math": "import math"}
_SETUP = (
    "from triton_magics.problems.child.contract_op import ContractProblem",
    "_problem = ContractProblem(globals())",
    "SIZES, SHAPES, DTYPES = _problem.sizes, (), _problem.dtypes",
    'MUTATES, EXTENTS, LAYOUTS = _problem.mutates, {}, ("contiguous",)',
    "make_inputs, reference = _problem.make_inputs, _problem.reference",
)


def write_contract_op(cell: str, expression: str | None = None) -> str:
    """Return the text of an op.

    Args:
        cell: the contract as JSON; or a module with `contract` and `reference`.
        expression: the reference of a JSON contract, in its arguments' names: `torch.relu(x)`.

    Raises:
        BadContract: names every fault of a JSON contract.
        BadKernelSource: neither JSON nor such a module, or the expression is none.
    """
    if cell.lstrip().startswith("{"):
        source = _write_module(read_contract(cell), expression)
    else:
        source = _check_module(cell, expression)
    return source.rstrip() + "\n\n\n" + "\n".join((MARK, *_SETUP)) + "\n"


def _write_module(contract: IOContract, expression: str | None) -> str:
    inputs = [a.name for a in contract.args if a.role != "output" and not a.is_meta]
    if expression is None:
        raise BadKernelSource(
            "a JSON contract needs a reference: add --reference with an expression of "
            f"{', '.join(inputs)}, such as --reference 'torch.relu({inputs[0] if inputs else ''})'"
        )
    names = _names_of(expression)
    if unknown := sorted(names - {*inputs, *_MODULES, *vars(builtins)}):
        raise BadKernelSource(
            f"--reference names {', '.join(unknown)}; known: {', '.join((*inputs, *_MODULES))}"
        )
    imports = [text for name, text in _MODULES.items() if name in names]
    lines = [
        *imports,
        "from triton_magics.io_contract import read_contract",
        "",
        f'contract = read_contract(r"""{contract.to_json()}""")',
        "",
        "",
        f"def reference({', '.join(inputs)}):",
        f"    return {expression.strip()}",
    ]
    return "\n".join(lines)


def _names_of(expression: str) -> set[str]:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise BadKernelSource(f"--reference is no expression: {error}") from None
    bound = {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and _is_store(node))
    }
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _check_module(cell: str, expression: str | None) -> str:
    """Return a module's text, with `io_contract` imported from this package."""
    if expression is not None:
        raise BadKernelSource("--reference belongs to a JSON contract; a module defines reference")
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise BadKernelSource(
            f"the cell is neither a JSON contract nor Python: {error}", line=line
        ) from None
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    } | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if missing := [name for name in ("contract", "reference") if name not in names]:
        raise BadContract(
            f"the cell does not define {' and '.join(missing)}: write contract = "
            "IOContractBuilder()...build() and def reference(...), or a JSON contract"
        )
    return _rename_imports(cell, tree)


def _rename_imports(cell: str, tree: ast.Module) -> str:
    lines = source_lines(cell)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        if (node.module or "").split(".")[0] == "io_contract":
            line = lines[node.lineno - 1]
            new = line.replace("from io_contract", "from triton_magics.io_contract", 1)
            lines[node.lineno - 1] = new
    return "\n".join(lines)
