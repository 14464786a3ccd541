"""Tools that judge kernels which a call brings along, outside the workspace: the guide's three."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from triton_magics.model import Status
from triton_magics.serve.mcp_result import ToolResult, cut
from triton_magics.verbs._base import Request, option

KernelType = Literal["torch", "torch_cuda", "triton", "cuda", "multi_kernel"]
Source = Annotated[str, option("")]
Type = Annotated[KernelType, option("")]
TypeOfReference = Annotated[str | None, option("torch by default")]
Metadata = Annotated[dict[str, Any] | None, option("entry_point, or op in place of a contract")]
Contract = Annotated[dict[str, Any] | None, option("args and launch")]


class _Options(Request):
    io_contract: Contract = None
    metadata: Metadata = None
    num_trials: Annotated[int | None, option("")] = None
    num_warmup: Annotated[int | None, option("")] = None
    rtol: Annotated[float | None, option("")] = None
    atol: Annotated[float | None, option("")] = None
    timeout: Annotated[float | None, option("")] = None
    enable_device_metrics: Annotated[bool | None, option("")] = None
    wait_s: Annotated[float | None, Field(ge=0), option("")] = None

    @property
    def options(self) -> dict[str, Any]:
        """The options that the call has."""
        names = ("num_trials", "num_warmup", "rtol", "atol", "timeout", "enable_device_metrics")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class EvaluateKernelRequest(_Options):
    """A kernel, and what defines the right output."""

    kernel_source: Source
    kernel_type: Type
    reference_kernel_source: Annotated[str | None, option("")] = None
    reference_kernel_type: TypeOfReference = None
    reference_kernel_metadata: Annotated[dict[str, Any] | None, option("")] = None

    def body(self) -> dict[str, Any]:
        """Return the request in the form of REST."""
        own = _kernel(self.kernel_source, self.kernel_type, self.io_contract, self.metadata)
        if self.reference_kernel_source is None:
            return {"kernel": own, **self.options}
        kind = self.reference_kernel_type or "torch"
        contract = None if kind in ("torch", "torch_cuda") else self.io_contract
        more = self.reference_kernel_metadata
        reference = _kernel(self.reference_kernel_source, kind, contract, more)
        return {"kernel": own, "reference": reference, **self.options}


class CompareKernelsRequest(_Options):
    """Two kernels; the first defines the right output."""

    ref_kernel_source: Source
    ref_kernel_type: Type
    custom_kernel_source: Source
    custom_kernel_type: Type
    reference_kernel_metadata: Annotated[dict[str, Any] | None, option("")] = None

    def body(self) -> dict[str, Any]:
        """Return the request in the form of REST."""
        kind = self.ref_kernel_type
        contract = None if kind in ("torch", "torch_cuda") else self.io_contract
        ref = _kernel(self.ref_kernel_source, kind, contract, self.reference_kernel_metadata)
        source, own_kind = self.custom_kernel_source, self.custom_kernel_type
        own = _kernel(source, own_kind, self.io_contract, self.metadata)
        return {"ref_kernel": ref, "custom_kernel": own, **self.options}


def _kernel(
    source: str, kind: str, contract: Mapping[str, Any] | None, metadata: Mapping[str, Any] | None
) -> dict[str, Any]:
    own = {"io": contract, "metadata": metadata}
    return {
        "source_code": source,
        "kernel_type": kind,
        **{name: value for name, value in own.items() if value is not None},
    }


_PLACES = (
    (r"\b(ref|custom)_kernel\.source_code", r"\1_kernel_source"),
    (r"\b(ref|custom)_kernel\.kernel_type", r"\1_kernel_type"),
    (r"\breference\.source_code", "reference_kernel_source"),
    (r"\breference\.kernel_type", "reference_kernel_type"),
    (r"\b(?:reference|ref_kernel)\.metadata", "reference_kernel_metadata"),
    (r"\bkernel\.source_code", "kernel_source"),
    (r"\bkernel\.kernel_type", "kernel_type"),
    (r"\b(?:\w*kernel|reference)\.io\b", "io_contract"),
    (r"\b(?:custom_)?kernel\.metadata", "metadata"),
)


def in_call_names(message: str) -> str:
    """Return a message with the arguments of a tool in place of the fields of REST."""
    for pattern, name in _PLACES:
        message = re.sub(pattern, name, message)
    return message


def kernel_faults(
    request: type[EvaluateKernelRequest | CompareKernelsRequest],
    values: Mapping[str, Any],
    read: Callable[[dict[str, Any]], object],
) -> str:
    """Return the faults of the kernels of a call, beside those of its arguments; else nothing.

    Args:
        request: of the tool; it refuses the values.
        values: of the call, by the fields of the request.
        read: takes the request in the form of REST.
    """
    from triton_magics.serve.http_answers import BadRequest  # on use: it imports FastAPI

    named: set[str] = set()
    try:
        request.model_validate(dict(values))
    except ValidationError as error:
        named = {str(fault["loc"][0]) for fault in error.errors()}
    # What is refused, or missing, becomes something that is accepted: its fault is known already.
    required = (name for name, field in request.model_fields.items() if field.is_required())
    kind = "torch" if values.get("io_contract") is None else "triton"  # torch needs no contract
    accepted: dict[str, Any] = {n: kind if n.endswith("_type") else "?" for n in required}
    accepted |= {name: value for name, value in values.items() if name not in named}
    try:
        read(request(**accepted).body())
    except BadRequest as error:
        others = [fault for fault in error.faults if in_call_names(fault.field) not in named]
        return faults_text(others)
    return ""


def faults_text(faults: Iterable[object]) -> str:
    """Return the faults of a request as those of a call, each once."""
    return "; ".join(dict.fromkeys(in_call_names(str(fault)) for fault in faults))


def kernel_result(value: Any, uri: str) -> ToolResult:
    """Return the compact result of a `GuideResult`."""
    own = value.kernel_exec_result
    judged = {True: "right", False: "wrong", None: "not judged"}[own.correctness]
    words = ["compiled" if own.compiled else "does not compile"]
    words += [judged] if own.compiled else []
    words += [f"{own.runtime:.4g} ms"] if own.runtime is not None else []
    words += [f"{value.speedup:.2f}x the reference's speed"] if value.speedup is not None else []
    faults = [own.compilation_error, own.validation_error]
    badges = [f"! badges: {', '.join(value.badges)}"] if value.badges else []
    text = "\n".join([*(each for each in faults if each), *badges])
    figures = {
        "compiled": str(own.compiled).lower(),
        "correctness": None if own.correctness is None else str(own.correctness).lower(),
        "runtime_ms": own.runtime,
        "ref_runtime_ms": value.ref_runtime,
        "speedup": value.speedup,
    }
    unknown = value.status in (Status.UNAVAILABLE, Status.INTERRUPTED)
    return ToolResult(
        ok=None if unknown else own.compiled and own.correctness is not False,
        status=str(value.status),
        headline=f"{str(value.status).upper()}: {', '.join(words)}",
        text=cut(text, uri),
        figures={name: each for name, each in figures.items() if each is not None},
        uri=uri,
    )


__all__ = [
    "CompareKernelsRequest",
    "EvaluateKernelRequest",
    "faults_text",
    "kernel_faults",
    "kernel_result",
]
