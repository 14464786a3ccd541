"""Write a package with the fastest versions of an op, which needs torch and triton only.

A call goes to the version that was fastest at the measured size nearest to it, by dtype and number
of elements of the first tensor. It goes to torch where torch was faster, where no version has
passed in that dtype, where a version refuses its arguments, and where there is no GPU.
"""

from __future__ import annotations

import ast
import pprint
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from triton_magics.errors import BadValue
from triton_magics.model import KernelSource, OpFacts, short

MARK = "# Written by triton_magics"
_TYPES = {bool: "bool", int: "int", float: "float"}
_INIT = '''{mark}; `best` with `--install` writes it again.
"""{op}, by the fastest of these versions or by torch.

{call} is the public function, and the custom operator {name}, so that
torch.compile keeps it whole. Copy this folder into your project: it needs torch and triton only.

{measured}
"""

import math
import os

import torch

try:
    from . import {modules}
except ImportError:  # no triton here: torch computes
    _FUNCTIONS = {{}}
else:
    _FUNCTIONS = {functions}

# dtype -> (elements of the first tensor, who is fastest there), the smallest first
TABLE = {table}
REFUSALS = (AssertionError, NotImplementedError, TypeError, ValueError)


def {op}({signature}):
    """Return {torch}."""
    tensors = [value for value in ({arguments},) if isinstance(value, torch.Tensor)]
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return _torch({arguments})
    return _operator({arguments})


def choose(x):
    """Return who computes a call whose first tensor is x: the name of a version, or torch."""
    rows = TABLE.get(str(x.dtype).removeprefix("torch."), ())
    usable = x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"
    if not rows or not usable or not x.numel():
        return "torch"
    return min(rows, key=lambda row: abs(math.log(row[0] / x.numel())))[1]


def _torch({signature}):
{fallback}


def _compute({parameters}):
    function = _FUNCTIONS.get(choose({first}))
    if function is None:
        return _torch({arguments}).clone()
    try:
        return function({arguments})
    except REFUSALS:
        return _torch({arguments}).clone()


_operator = torch.library.custom_op(
    "{name}", _compute, mutates_args=(), schema="({schema}) -> Tensor"
)


@_operator.register_fake
def _fake({parameters}):
    return torch.empty_like(_torch({arguments}))
'''


class FastestProvider(NamedTuple):
    """The fastest provider of one dtype at one size.

    Attributes:
        dtype: `float32`.
        elements: of the first input.
        provider: a version's name, or torch.
        us, torch_us: their means, microseconds; None where nothing was timed on a GPU.
    """

    dtype: str
    elements: int
    provider: str
    us: float | None = None
    torch_us: float | None = None


def installed_package(
    facts: OpFacts,
    sources: Sequence[KernelSource],
    choices: Sequence[FastestProvider],
    *,
    device: str | None,
    reference: str | None = None,
) -> dict[str, str]:
    """Return the package's files: name -> text.

    Args:
        facts: the op.
        sources: the versions that the choices name, each a Python module.
        choices: the measured table.
        device: the GPU that was measured; None: nothing was timed.
        reference: text of the user's own reference; None for an op that ships.

    Raises:
        BadValue: the op's arguments can't be those of an operator of torch.
    """
    parameters = _parameters(facts)
    names = ", ".join(parameters)
    defaults = ", ".join(n if d is None else f"{n}={d!r}" for n, d in parameters.items())
    modules = {source.version: source.entry for source in sources}
    table: dict[str, list[tuple[int, str]]] = {}
    for choice in sorted(choices):
        table.setdefault(choice.dtype, []).append((choice.elements, choice.provider))
    functions = ", ".join(f'"{name}": {name}.{entry}' for name, entry in modules.items())
    init = _INIT.format(
        mark=MARK,
        op=facts.name,
        call=f"`{facts.name}({names})`",
        name=f"kernels::{facts.name}",
        measured=_measured_text(choices, device),
        modules=", ".join(modules),
        functions=f"{{{functions}}}",
        table=pprint.pformat(table, width=96),
        signature=defaults,
        arguments=names,
        parameters=names,
        first=next(iter(parameters)),
        torch=facts.torch_equivalent,
        fallback=_fallback(facts, names, own=reference is not None),
        schema=", ".join(_schema(n, d) for n, d in parameters.items()),
    )
    files = {f"{source.version}.py": _with_mark(source) for source in sources}
    if reference is not None:
        files["reference.py"] = f"{MARK}: the reference of {facts.name}\n{reference}"
    return {"__init__.py": init, **files}


def _with_mark(source: KernelSource) -> str:
    """Return the version's code below the mark of a written file."""
    return f"{MARK}: {source.op} {source.version}, attempt {source.attempt}\n{source.source}"


def _parameters(facts: OpFacts) -> Mapping[str, object]:
    """Return the arguments with their defaults, None for a tensor.

    Raises:
        BadValue: an argument is neither a tensor nor a number.
    """
    function = ast.parse(f"def {facts.signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    names = [argument.arg for argument in function.args.args]
    values = [ast.literal_eval(default) for default in function.args.defaults]
    for name, value in zip(names[len(names) - len(values) :], values, strict=True):
        if type(value) not in _TYPES:
            raise BadValue(
                f"{facts.name} can't be installed: its argument {name}={value!r} is neither a "
                "tensor nor a number."
            )
    return dict.fromkeys(names) | dict(zip(names[len(names) - len(values) :], values, strict=True))


def _schema(name: str, default: object) -> str:
    return f"Tensor {name}" if default is None else f"{_TYPES[type(default)]} {name}"


def _fallback(facts: OpFacts, names: str, *, own: bool) -> str:
    if own:
        return f"    from .reference import reference\n\n    return reference({names})"
    return f"    return {facts.torch_equivalent}"


def _measured_text(choices: Sequence[FastestProvider], device: str | None) -> str:
    """Return the table of the measured times in words, a line each."""
    if device is None:
        return "Nothing was timed on a GPU: one version serves every size."
    rows = [
        f"    {c.dtype:9} {c.elements:>12,} elements: {short(c.provider)} {c.us:.2f} us, "
        f"torch {c.torch_us:.2f} us"
        for c in sorted(choices)
        if c.us is not None and c.torch_us is not None
    ]
    return "\n".join([f"Measured on {device}:", "", *rows])


__all__ = ["MARK", "FastestProvider", "installed_package"]
