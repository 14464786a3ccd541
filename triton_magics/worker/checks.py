"""The checks on one call's outputs that look at no value: form, memory."""

from __future__ import annotations

from typing import Any

import torch

from triton_magics.model import Case, CaseResult, CaseStatus
from triton_magics.worker import oracle
from triton_magics.worker.cases import Inputs
from triton_magics.worker.guard import broken
from triton_magics.worker.subject import Call, Subject

RETURNED_BEFORE = (
    "the output shares memory with what an earlier call returned, and overwrites it: "
    "make a new tensor in every call"
)


def fail(case: Case, status: CaseStatus, reason: str, **more: Any) -> CaseResult:
    """A case that failed without a figure."""
    return CaseResult(case=case, status=status, reason=reason, **more)


def left_behind(subject: Subject, case: Case, inputs: Inputs, call: Call) -> CaseResult | None:
    """Writes outside the tensors, changed inputs, work that went on."""
    hits = broken([*inputs.guards, *call.memory.guarded])
    if hits:
        return fail(case, CaseStatus.OUT_OF_BOUNDS, hits[0], error=call.outside(subject))
    if failed := unfinished(case, call):
        return failed
    if changed := inputs.changed():
        return fail(case, CaseStatus.MUTATED_INPUT, changed)
    return None


def unfinished(case: Case, call: Call) -> CaseResult | None:
    """Work that went on after the call had returned."""
    return fail(case, CaseStatus.UNFINISHED_WORK, call.late) if call.late else None


def read_outside(subject: Subject, case: Case, call: Call) -> CaseResult | None:
    """A load outside its tensor that the output does not show; only the interpreter sees it."""
    found = call.outside(subject)
    if found is None:
        return None
    return fail(case, CaseStatus.OUT_OF_BOUNDS, found.message, error=found)


def wrong_form(
    case: Case, given: tuple[Any, ...], value: Any, native: oracle.Native
) -> CaseResult | None:
    """Type, count, shape, dtype, device and aliasing of what was returned.

    Args:
        case: for the result.
        given: the inputs that no output may share memory with.
        value: what the version returned.
        native: what it should be like.
    """
    wanted = native.returned
    got = () if value is None and not wanted else oracle.outputs_of(value)
    if native.single == isinstance(value, tuple | list) or len(got) != len(wanted):
        want = _wanted(native)
        return fail(case, CaseStatus.WRONG_TYPE, f"returned {_kind(value)}, should be {want}")
    for tensor, like in zip(got, wanted, strict=True):
        if type(tensor) is not torch.Tensor:
            return fail(
                case, CaseStatus.WRONG_TYPE, f"returned {_kind(tensor)}, should be a torch.Tensor"
            )
        said = _difference(tensor, like)
        if said:
            return fail(case, *said)
        if _aliases(tensor, given):
            return fail(case, CaseStatus.ALIASED, "the output shares memory with an input")
    return None


def returned_before(case: Case, value: Any, earlier: tuple[Any, ...]) -> CaseResult | None:
    """Memory that an earlier call has returned, while its caller still holds it."""
    if any(_aliases(tensor, earlier) for tensor in oracle.outputs_of(value)):
        return fail(case, CaseStatus.ALIASED, RETURNED_BEFORE)
    return None


def _wanted(native: oracle.Native) -> str:
    if not native.returned:
        return "None: this op changes its inputs"
    return "one tensor" if native.single else f"{len(native.returned)} tensors"


def _difference(tensor: torch.Tensor, native: torch.Tensor) -> tuple[CaseStatus, str] | None:
    """In what a returned tensor is not like torch's."""
    if tensor.shape != native.shape:
        said = f"returned {_shape(tensor)}, should be {_shape(native)}"
        return CaseStatus.WRONG_SHAPE, said
    if tensor.dtype != native.dtype:
        return CaseStatus.WRONG_DTYPE, f"returned {tensor.dtype}, should be {native.dtype}"
    if tensor.device != native.device:
        said = f"returned a tensor on {tensor.device}, should be {native.device}"
        return CaseStatus.WRONG_DEVICE, said
    return None


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def _shape(tensor: torch.Tensor) -> str:
    return "[" + ", ".join(str(n) for n in tensor.shape) + "]"


def _aliases(tensor: torch.Tensor, given: tuple[Any, ...]) -> bool:
    own = tensor.untyped_storage().data_ptr()
    tensors = (x for x in given if isinstance(x, torch.Tensor))
    return tensor.numel() > 0 and any(own == x.untyped_storage().data_ptr() for x in tensors)
