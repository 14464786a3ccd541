"""The sources of a request as an op and a version: text in, text out; nothing runs here."""

from __future__ import annotations

import ast
import re

from triton_magics.errors import BadValue
from triton_magics.io_contract import IOContract, LaunchConfig
from triton_magics.languages.cuda.cpp_source import find_kernels
from triton_magics.problems import write_contract_op
from triton_magics.serve.guide_requests import KernelCode

OP = "subject"
_MARK = "\n\n\n# ---- written by the server from the request\n"
_OP_TEXT = """
import inspect as _inspect

import torch as _torch

from triton_magics.io_contract import read_contract as _read_contract

contract = _read_contract({contract!r})
_TARGET = {target}


def reference({names}):
    values = {{{pairs}}}
    parameters = _inspect.signature(_TARGET).parameters
    if set(parameters) <= set(values):
        return _TARGET(**{{name: values[name] for name in parameters}})
    return _TARGET(*(value for value in values.values() if isinstance(value, _torch.Tensor)))
"""
_FIRST_TENSOR = "lambda *values: next(v for v in values if isinstance(v, _torch.Tensor)).clone()"
_TRITON = """
import torch as _torch


def triton_{op}({names}):
{outputs}
    {kernel}[{grid!r}]({by_name})
    return {returns}
"""
_CUDA = """
/*py
def cuda_{op}({names}):
{outputs}
    {kernel}<<<{launch}>>>({by_place})
    return {returns}
*/
"""


def op_text(reference: KernelCode, contract: IOContract | None, role: str = "reference") -> str:
    """Return the text of the op that a reference defines.

    Args:
        reference: of type torch: `reference` and `make_inputs`, or a function, or a `Model`.
        contract: of the kernel that is judged; its inputs are drawn from it.
        role: of the code in its request, for messages.

    Raises:
        BadValue: the reference has neither inputs of its own nor a contract.
    """
    names = _names(reference.source_code)
    if contract is None:
        if {"reference", "make_inputs"} <= names:
            return reference.source_code
        raise BadValue(
            f"the {role} defines no inputs: give the kernel a contract (io), or define Model "
            "and get_inputs, or reference and make_inputs"
        )
    text = reference.source_code + _MARK + _op_text(contract, _target(reference, names))
    return write_contract_op(text)


def is_problem(source: str) -> bool:
    """Return True for a module with `Model` and `get_inputs`, which brings its own inputs."""
    return {"Model", "get_inputs"} <= _names(source)


def inputs_only_text(contract: IOContract) -> str:
    """Return the text of an op that has inputs, and whose output nothing is compared with."""
    return write_contract_op(_op_text(contract, _FIRST_TENSOR).lstrip())


def _op_text(contract: IOContract, target: str) -> str:
    names = [a.name for a in contract.args if a.role != "output" and not a.is_meta]
    return _OP_TEXT.format(
        contract=contract.to_json(),
        target=target,
        names=", ".join(names),
        pairs=", ".join(f"{name!r}: {name}" for name in names),
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
    """Return the source of a version and its entry; a raw kernel gets a function that launches it.

    Raises:
        BadValue: it has several kernels, and none is named.
    """
    raw = _raw_kernels(kernel)
    contract = kernel.contract
    if contract is None or not raw:
        return kernel.source_code, kernel.entry
    if kernel.entry and kernel.entry not in raw:
        return kernel.source_code, kernel.entry  # a function that launches its kernels itself
    name = kernel.entry or (raw[0] if len(raw) == 1 else None)
    if name is None:
        raise BadValue(f"name one of the kernels in metadata.kernel_name: {', '.join(raw)}")
    text = _launching_text(kernel.kernel_type, name, contract)
    mark = _MARK if kernel.kernel_type == "triton" else "\n\n"
    return kernel.source_code + mark + text, f"{kernel.kernel_type}_{OP}"


def _launching_text(kind: str, kernel: str, contract: IOContract) -> str:
    """Return a function that makes the outputs, launches the kernel and returns them."""
    launch = contract.launch or LaunchConfig.model_validate({"grid": 1})
    inputs = [a for a in contract.args if a.role != "output" and not a.is_meta]
    outputs = [a for a in contract.args if a.role == "output"]
    device = f"{next(a.name for a in inputs if a.type == 'tensor')}.device"
    torch = "_torch" if kind == "triton" else "torch"
    lines = [
        f"    {a.name} = {torch}.empty({tuple(a.tensor_spec.shape)!r}, "
        f"dtype={torch}.{a.tensor_spec.dtype}, device={device})"
        for a in outputs
        if a.tensor_spec is not None
    ]
    options = [
        f"{name}={value}"
        for name in ("num_warps", "num_stages")
        if (value := getattr(launch, name)) is not None
    ]
    values = {a.name: repr(a.value) if a.is_meta else a.name for a in contract.args}
    block = launch.block.xyz if launch.block else (1, 1, 1)
    returns = [a.name for a in outputs]
    return (_TRITON if kind == "triton" else _CUDA).format(
        op=OP,
        names=", ".join(a.name for a in inputs),
        outputs="\n".join(lines) or "    pass",
        kernel=kernel,
        grid=launch.grid.xyz,
        launch=f"{launch.grid.xyz}, {block}, {launch.shared_mem_bytes or 0}",
        by_name=", ".join([*(f"{name}={value}" for name, value in values.items()), *options]),
        by_place=", ".join(values.values()),
        returns=", ".join(returns) or "None",
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


def _raw_kernels(kernel: KernelCode) -> list[str]:
    """Return the kernels that a source defines and does not launch itself."""
    source = kernel.source_code
    if kernel.kernel_type == "cuda":
        return [] if "/*py" in source else list(find_kernels(source))
    if kernel.kernel_type != "triton":
        return []
    functions = [node for node in _tree(source) if isinstance(node, ast.FunctionDef)]
    marks = ("jit", "autotune", "heuristics")
    return [
        node.name
        for node in functions
        if any(mark in ast.unparse(d) for d in node.decorator_list for mark in marks)
    ]


_WORDS = (
    (
        rf"write def \w+_{OP}\(\.\.\.\), which (.*)",
        r"write a function that \1; with io a kernel alone will do",
    ),
    (rf"(?:call it \w+_{OP}, or )?say --entry (\w+)", r"name it in metadata.entry_point: \1"),
    (r"\bthe cell\b", "the source"),
)


def in_request_words(message: str) -> str:
    """Return a message on a cell of a notebook as one on a kernel of a request."""
    for pattern, text in _WORDS:
        message = re.sub(pattern, text, message)
    return message


__all__ = ["OP", "in_request_words", "inputs_only_text", "is_problem", "kernel_text", "op_text"]
