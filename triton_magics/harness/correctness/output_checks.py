"""Checks on one call that read no output values: type, shape, memory, late work."""

from __future__ import annotations

from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallRecord, outputs_of
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.guard_bands import find_damage
from triton_magics.harness.correctness.output_forms import Placing
from triton_magics.model import Case, CaseResult, CaseStatus

REUSED_MEMORY = (
    "the output overwrites the memory of an output that an earlier call returned: "
    "make a new tensor in every call"
)

OVERLAPPING = (
    "elements of the output share memory, as those of an expanded tensor do: a write to one "
    "changes others. Return a tensor with memory for each element"
)


def failed_case(case: Case, status: CaseStatus, reason: str, **more: Any) -> CaseResult:
    """Return the result of a case that failed without an error measure."""
    return CaseResult(case=case, status=status, reason=reason, **more)


def check_side_effects(case: Case, inputs: CaseInputs, call: CallRecord) -> CaseResult | None:
    """Check for writes outside tensors, changed inputs, and work after the return."""
    guards = () if (are_untouched := inputs.are_untouched()) else inputs.guards
    if hits := (*find_damage(list(guards)), *call.damage):
        return failed_case(case, CaseStatus.OUT_OF_BOUNDS, hits[0], error=call.outside)
    if call.replaced:
        names = ", ".join(call.replaced[:3])
        return failed_case(case, CaseStatus.TAMPERED, f"the version replaced {names}")
    if failed := check_unfinished_work(case, call):
        return failed
    if not are_untouched and (changed := inputs.beside_arguments.find_changed_input()):
        return failed_case(case, CaseStatus.MUTATED_INPUT, changed)
    return None


def check_unfinished_work(case: Case, call: CallRecord) -> CaseResult | None:
    """Check for work that continued after the call returned, and for changed settings."""
    if call.late_work:
        return failed_case(case, CaseStatus.UNFINISHED_WORK, call.late_work)
    if call.left_behind:
        return failed_case(case, CaseStatus.SIDE_EFFECT, call.left_behind)
    return None


def check_reads(case: Case, call: CallRecord) -> CaseResult | None:
    """Check for loads outside a tensor; only the interpreter can detect them."""
    if call.outside is None:
        return None
    message = call.outside.message
    return failed_case(case, CaseStatus.OUT_OF_BOUNDS, message, error=call.outside)


def check_race(case: Case, call: CallRecord) -> CaseResult | None:
    """Check for races between programs, whose result the interpreter can't show."""
    if call.race is None:
        return None
    return failed_case(case, CaseStatus.RACE, call.race.message, error=call.race)


def check_form(
    case: Case,
    call: CallRecord,
    torch_outputs: oracle.TorchOutputs,
    *,
    device: torch.device | None = None,
    mutates: tuple[int, ...] = (),
) -> CaseResult | None:
    """Check the type, count, shape, dtype, device and aliasing of the return value.

    Args:
        case: for the result.
        call: with the version's return value.
        torch_outputs: torch's own outputs, for comparison.
        device: where its tensors should be; None: where torch's are.
        mutates: positions of the arguments that the op changes, which may be returned.
    """
    value, expected = call.value, torch_outputs.returned
    got = () if value is None and not expected else outputs_of(value)
    if torch_outputs.returns_tensor == isinstance(value, tuple | list) or len(got) != len(expected):
        want = _describe_expected(torch_outputs)
        return failed_case(
            case, CaseStatus.WRONG_TYPE, f"returned {_kind(value)}, should be {want}"
        )
    for tensor, like in zip(got, expected, strict=True):
        if type(tensor) is not torch.Tensor:
            return failed_case(
                case, CaseStatus.WRONG_TYPE, f"returned {_kind(tensor)}, should be a torch.Tensor"
            )
        difference = _form_difference(tensor, like, device or like.device)
        if difference:
            return failed_case(case, *difference)
    if {*call.shared_inputs} - {*mutates}:
        return failed_case(case, CaseStatus.ALIASED, "the output shares memory with an input")
    if not mutates and _has_placing(Placing.OVERLAPPING, call, expected):
        return failed_case(case, CaseStatus.ALIASED, OVERLAPPING)
    return None


def is_scattered(case: Case, call: CallRecord, torch_outputs: oracle.TorchOutputs) -> bool:
    """Return whether an output is not contiguous where all inputs and torch's own output are."""
    if case.layouts or not case.has_plain_values:  # special values may put inputs into one tensor
        return False
    return _has_placing(Placing.SCATTERED, call, torch_outputs.returned)


def _has_placing(placing: Placing, call: CallRecord, expected: tuple[torch.Tensor, ...]) -> bool:
    """Return whether a returned tensor lies so in memory, and torch's own is contiguous."""
    pairs = zip(call.placings, expected, strict=False)
    return any(own is placing and like.is_contiguous() for own, like in pairs)


def _describe_expected(torch_outputs: oracle.TorchOutputs) -> str:
    if not torch_outputs.returned:
        return "None: this op changes its inputs"
    return (
        "one tensor" if torch_outputs.returns_tensor else f"{len(torch_outputs.returned)} tensors"
    )


def _form_difference(
    tensor: torch.Tensor, torch_outputs: torch.Tensor, device: torch.device
) -> tuple[CaseStatus, str] | None:
    """Return how a returned tensor differs from torch's, None if it does not."""
    if tensor.shape != torch_outputs.shape:
        difference = f"returned {_shape(tensor)}, should be {_shape(torch_outputs)}"
        return CaseStatus.WRONG_SHAPE, difference
    if tensor.dtype != torch_outputs.dtype:
        return CaseStatus.WRONG_DTYPE, f"returned {tensor.dtype}, should be {torch_outputs.dtype}"
    if tensor.device != device:
        difference = f"returned a tensor on {tensor.device}, should be {device}"
        return CaseStatus.WRONG_DEVICE, difference
    return None


def _kind(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def _shape(tensor: torch.Tensor) -> str:
    return "[" + ", ".join(str(n) for n in tensor.shape) + "]"
