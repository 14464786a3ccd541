"""Requests that bring their own kernels: evaluate, compare, validate. All faults at once."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr

from triton_magics.errors import BadContract
from triton_magics.io_contract import (
    ContractFault,
    IOContract,
    find_language_faults,
    read_contract,
)
from triton_magics.serve.http_answers import BadRequest, FieldFault, read_model
from triton_magics.session.checks import MAX_RUNS

KernelType = Literal["torch", "torch_cuda", "triton", "cuda", "multi_kernel"]
NEED_CONTRACT = ("triton", "cuda", "multi_kernel")
_ENTRIES = ("entry_point", "kernel_name", "function_name", "class_name")
MAX_METADATA = 50
Tolerance = Annotated[float | None, Field(ge=0, lt=1)]


def reads_metrics() -> bool:
    """Return the default of `enable_device_metrics`, which the server's environment sets."""
    return os.environ.get("ENABLE_DEVICE_METRICS", "").lower() in ("1", "true", "yes")


class Body(BaseModel):
    """Base of the bodies."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class KernelCode(Body):
    """A kernel: its source, its type, its arguments.

    Attributes:
        source_code: a module; for `cuda` the text of a .cu file.
        kernel_type: its language.
        io: contract of its arguments; needed for triton, cuda and multi_kernel.
        metadata: `entry_point`, `kernel_name`, `function_name` or `class_name` names what is
            called; `op` names an op of this server in place of a reference and a contract.
    """

    source_code: str = Field(min_length=1)
    kernel_type: KernelType
    io: dict[str, Any] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict, max_length=MAX_METADATA)
    _contract: IOContract | None = PrivateAttr(default=None)

    @property
    def contract(self) -> IOContract | None:
        """The contract, checked."""
        return self._contract

    @property
    def entry(self) -> str | None:
        """Name of what is called; None where the metadata does not name it."""
        return next((str(self.metadata[k]) for k in _ENTRIES if k in self.metadata), None)

    @property
    def op(self) -> str | None:
        """Name of an op of this server; None where the request brings its own."""
        op = self.metadata.get("op")
        return str(op) if op is not None else None

    def find_faults(self, field: str, max_source_bytes: int) -> Iterator[FieldFault]:
        """Yield what is wrong with the kernel, with the path of each field.

        Args:
            field: `kernel`.
            max_source_bytes: largest source.
        """
        if len(self.source_code.encode(errors="replace")) > max_source_bytes:
            text = f"a source may have {max_source_bytes} bytes"
            yield FieldFault(f"{field}.source_code", text, "too_long")
        yield from self._find_contract_faults(field)
        if self.kernel_type == "multi_kernel":
            yield from self._find_entry_faults(field)

    def _find_contract_faults(self, field: str) -> Iterator[FieldFault]:
        if self.io is None:
            if self.kernel_type in NEED_CONTRACT and self.op is None:
                text = f"a {self.kernel_type} kernel needs the contract of its arguments"
                yield FieldFault(f"{field}.io", text, "missing")
            return
        self._contract, faults = _read_contract(self.io, self.kernel_type)
        yield from _named(faults, f"{field}.io")

    def _find_entry_faults(self, field: str) -> Iterator[FieldFault]:
        names = _functions(self.source_code)
        path = f"{field}.metadata.entry_point"
        if self.metadata.get("entry_point") is None:
            yield FieldFault(path, "a multi_kernel source needs its function's name", "missing")
        elif names and self.metadata["entry_point"] not in names:
            listing = ", ".join(names)
            yield FieldFault(path, f"no function {self.entry!r}", "unknown", listing)


def _read_contract(io: Any, kernel_type: str) -> tuple[IOContract | None, Sequence[ContractFault]]:
    """Return the contract, where it is one, and its faults; those of no known type without it."""
    try:
        contract = read_contract(io)
    except BadContract as error:
        return None, error.faults
    is_known = kernel_type in get_args(KernelType)
    return contract, tuple(find_language_faults(contract, kernel_type)) if is_known else ()


def _named(faults: Iterable[ContractFault], path: str) -> Iterator[FieldFault]:
    for fault in faults:
        field = f"{path}.{fault.field}" if fault.field else path
        yield FieldFault(field, fault.message, "contract", fault.allowed)


def _functions(source: str) -> list[str]:
    """Return the functions of a module; none where it is not Python, which its compilation says."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


class _Options(Body):
    """Options that all requests have."""

    num_warmup: int = Field(default=10, ge=0, le=1000)
    rtol: Tolerance = None
    atol: Tolerance = None
    timeout: float = Field(default=120, ge=5, le=600)
    enable_device_metrics: bool = Field(
        default_factory=reads_metrics,
        validation_alias=AliasChoices("enable_device_metrics", "metrics"),
    )
    timer: Literal["gated", "graph", "launch"] = "gated"

    @property
    def subjects(self) -> dict[str, KernelCode | None]:
        """The kernels by their fields: the one that is judged, then its reference."""
        raise NotImplementedError

    @classmethod
    def read(cls, values: dict[str, Any], max_source_bytes: int) -> Self:
        """Return the request of a JSON object.

        Raises:
            BadRequest: names every field with a fault.
        """
        faults: list[FieldFault] = []
        request = None
        try:
            request = read_model(cls, values)
        except BadRequest as error:
            faults += error.faults
        if request is not None:
            for name, kernel in request.subjects.items():
                faults += kernel.find_faults(name, max_source_bytes) if kernel else ()
        else:
            faults += _faults_of_parts(values, max_source_bytes)
        if request is None or faults:
            raise BadRequest(list(dict.fromkeys(faults)))
        return request


def _faults_of_parts(values: dict[str, Any], max_source_bytes: int) -> Iterator[FieldFault]:
    """Yield the faults of the kernels of a request that has others, which are named already."""
    for name in ("kernel", "reference", "ref_kernel", "custom_kernel"):
        part = values.get(name)
        if not isinstance(part, dict):
            continue
        try:
            yield from read_model(KernelCode, part).find_faults(name, max_source_bytes)
        except BadRequest:
            if isinstance(part.get("io"), dict):
                _, faults = _read_contract(part["io"], str(part.get("kernel_type")))
                yield from _named(faults, f"{name}.io")


class EvaluateBody(_Options):
    """A kernel to compile, validate and time.

    Attributes:
        kernel: what is judged.
        reference: defines the right output; None: the op of the metadata, or none at all.
        num_trials: timed runs.
    """

    kernel: KernelCode
    reference: KernelCode | None = None
    num_trials: int = Field(default=100, ge=1, le=MAX_RUNS)

    @property
    def subjects(self) -> dict[str, KernelCode | None]:
        """The kernels by their fields."""
        return {"kernel": self.kernel, "reference": self.reference}


class ValidateBody(EvaluateBody):
    """A kernel to compile and validate."""

    num_trials: int = Field(default=1, ge=1, le=MAX_RUNS)
    timeout: float = Field(default=60, ge=5, le=600)


class CompareBody(_Options):
    """A kernel to compare with another: right, and how much faster."""

    ref_kernel: KernelCode
    custom_kernel: KernelCode
    num_trials: int = Field(default=100, ge=1, le=MAX_RUNS)

    @property
    def subjects(self) -> dict[str, KernelCode | None]:
        """The kernels by their fields."""
        return {"custom_kernel": self.custom_kernel, "ref_kernel": self.ref_kernel}


class LegacyBody(Body):
    """The old form of a comparison: torch with torch that holds CUDA."""

    ref_code: str = Field(min_length=1)
    custom_code: str = Field(min_length=1)
    num_trials: int = Field(default=100, ge=1, le=MAX_RUNS)
    timeout: float = Field(default=120, ge=5, le=600)

    def as_compare(self) -> dict[str, Any]:
        """Return the comparison in its new form."""
        return {
            "ref_kernel": {"source_code": self.ref_code, "kernel_type": "torch"},
            "custom_kernel": {"source_code": self.custom_code, "kernel_type": "torch_cuda"},
            "num_trials": self.num_trials,
            "timeout": self.timeout,
        }


__all__ = ["CompareBody", "EvaluateBody", "KernelCode", "LegacyBody", "ValidateBody"]
