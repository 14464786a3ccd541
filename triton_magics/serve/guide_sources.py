"""The sources of a request as an op and a version: text in, text out; nothing runs here."""

from __future__ import annotations

import ast

from triton_magics.errors import BadValue
from triton_magics.io_contract import IOContract
from triton_magics.serve.guide_requests import KernelCode

OP = "subject"
LANGUAGES = {
    "torch": "torch",
    "torch_cuda": "torch",
    "triton": "triton",
    "cuda": "cuda",
    "multi_kernel": "torch",
}
_MARK = "\n\n\n# ---- written by the server from the request\n"
_OP_TEXT = """
import inspect as _inspect

import torch as _torch

from triton_magics.io_contract import read_contract as _read_contract
from triton_magics.io_contract import tensors as _tensors
from triton_magics.operators import REGIMES as _REGIMES
from triton_magics.operators import SPECIALS as _SPECIALS

_CONTRACT = _read_contract({contract!r})
SIZES = {{"given": (1,)}}
SHAPES = ()
DTYPES = {dtypes!r}
REGIMES_SKIP = (*_REGIMES, *_SPECIALS)  # the contract says which values there are
LAYOUTS = ("contiguous",)
EXTENTS = {{}}
_NAMES = {names!r}


def make_inputs(shape, dtype, device, generator):
    trial = int(_torch.randint(1 << 30, (), generator=generator, device=generator.device))
    return _tensors.make_inputs(_CONTRACT, seed=0, trial=trial, device=device)


def reference(*values):
    by_name = dict(zip(_NAMES, values))
    parameters = _inspect.signature(_TARGET).parameters
    if set(parameters) <= set(by_name):
        return _TARGET(**{{name: by_name[name] for name in parameters}})
    return _TARGET(*(value for value in values if isinstance(value, _torch.Tensor)))


_TARGET = {target}
"""
_FIRST_TENSOR = "lambda *values: next(v for v in values if isinstance(v, _torch.Tensor)).clone()"
_WRAPPER = """
import torch as _torch


def triton_{op}({names}):
    _values = {{{pairs}}}
    _device = next(v.device for v in _values.values() if isinstance(v, _torch.Tensor))
{outputs}
    {kernel}[{grid!r}]({arguments})
    return {returns}
"""


def op_text(reference: KernelCode, contract: IOContract | None) -> str:
    """Return the text of the op that a reference defines.

    Args:
        reference: of type torch: `reference` and `make_inputs`, or a function, or a `Model`.
        contract: of the kernel that is judged; its inputs are drawn from it.

    Raises:
        BadValue: the reference has neither inputs of its own nor a contract.
    """
    names = _names(reference.source_code)
    if contract is None:
        if {"reference", "make_inputs"} <= names:
            return reference.source_code
        raise BadValue(
            "the reference defines no inputs: give the kernel a contract (io), or define "
            "reference and make_inputs"
        )
    return reference.source_code + _MARK + _op_text(contract, _target(reference, names))


def inputs_only_text(contract: IOContract) -> str:
    """Return the text of an op that has inputs, and whose output nothing is compared with."""
    return _op_text(contract, _FIRST_TENSOR).lstrip()


def _op_text(contract: IOContract, target: str) -> str:
    dtypes = tuple(dict.fromkeys(a.tensor_spec.dtype for a in contract.tensors if a.tensor_spec))
    return _OP_TEXT.format(
        contract=contract.to_json(),
        dtypes=dtypes[:1] or ("float32",),
        names=tuple(a.name for a in contract.args if a.role != "output"),
        target=target,
    )


def _target(reference: KernelCode, names: set[str]) -> str:
    """Return the expression of the function that a reference is called by."""
    entry = reference.entry
    if entry is None:
        usual = ("reference", "Model", "ModelNew", "forward", "run")
        entry = next((name for name in usual if name in names), None)
    if entry is None and len(names) == 1:
        (entry,) = names
    if entry is None or entry not in names:
        listing = ", ".join(sorted(names)) or "none"
        raise BadValue(f"name the reference's function in its metadata; it defines {listing}")
    if entry in _classes(reference.source_code):
        method = reference.metadata.get("method_name", "forward")
        return f"{entry}(*globals().get('get_init_inputs', list)()).{method}"
    return entry


def kernel_text(kernel: KernelCode) -> tuple[str, str | None]:
    """Return the source of a version and its entry; a raw kernel gets a wrapper that launches it.

    Raises:
        BadValue: it has several kernels, and none is named.
    """
    raw = _raw_kernels(kernel.source_code)
    contract = kernel.contract
    if kernel.kernel_type != "triton" or contract is None or not raw:
        return kernel.source_code, kernel.entry
    if kernel.entry and kernel.entry not in raw:
        return kernel.source_code, kernel.entry  # a function that launches its kernels itself
    name = kernel.entry or (raw[0] if len(raw) == 1 else None)
    if name is None:
        raise BadValue(f"name one of the kernels in metadata.kernel_name: {', '.join(raw)}")
    return kernel.source_code + _MARK + _wrapper(name, contract), f"triton_{OP}"


def _wrapper(kernel: str, contract: IOContract) -> str:
    launch = contract.launch
    inputs = [a.name for a in contract.args if a.role != "output"]
    buffers = [a for a in contract.args if a.role == "output"]
    options = [
        f"{name}={value}"
        for name in ("num_warps", "num_stages")
        if launch is not None and (value := getattr(launch, name)) is not None
    ]
    returns = ", ".join(f"_values[{name!r}]" for name in contract.output_names)
    return _WRAPPER.format(
        op=OP,
        names=", ".join(inputs),
        pairs=", ".join(f"{name!r}: {name}" for name in inputs),
        outputs="\n".join(
            f"    _values[{a.name!r}] = _torch.empty({tuple(a.tensor_spec.shape)!r}, "
            f"dtype=_torch.{a.tensor_spec.dtype}, device=_device)"
            for a in buffers
            if a.tensor_spec is not None
        ),
        kernel=kernel,
        grid=launch.grid.xyz if launch else (1, 1, 1),
        arguments=", ".join([*(f"{a.name}=_values[{a.name!r}]" for a in contract.args), *options]),
        returns=returns if len(contract.output_names) == 1 else f"({returns})",
    )


def _tree(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _names(source: str) -> set[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in _tree(source) if isinstance(node, kinds)}


def _classes(source: str) -> set[str]:
    return {node.name for node in _tree(source) if isinstance(node, ast.ClassDef)}


def _raw_kernels(source: str) -> list[str]:
    """Return the functions with the decorator `jit`, `autotune` or `heuristics`."""
    functions = [node for node in _tree(source) if isinstance(node, ast.FunctionDef)]
    marks = ("jit", "autotune", "heuristics")
    return [
        node.name
        for node in functions
        if any(mark in ast.unparse(d) for d in node.decorator_list for mark in marks)
    ]


__all__ = ["LANGUAGES", "OP", "inputs_only_text", "kernel_text", "op_text"]
