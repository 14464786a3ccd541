"""Causes of a wrong output that only further calls show: races, layouts, kinds of values."""

from __future__ import annotations

from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallOptions, CallRecord, VersionRaised
from triton_magics.harness.correctness.case_inputs import CaseInputs, is_bitwise_equal
from triton_magics.harness.correctness.comparison import CaseOracle, compare_outputs
from triton_magics.harness.correctness.computed_by import copy_outputs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.model import (
    NORMAL,
    PLAIN,
    Case,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    KernelError,
    Tolerance,
)

MAX_ELEMENTS = 300_000
MAX_PROGRAMS = 64  # in the interpreter, about a millisecond each
REPEATS = 2
LARGE_REGIMES = ("large", "x10", "shifted")
LARGE_SPECIALS = ("huge element", "rows unlike their neighbours", "rows at -20000")
ROW_END_CAUSES = (CauseCode.WRONG_FILL, CauseCode.LAST_BLOCK)


def explain_wrong_values(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> CaseResult:
    """Return a wrong result with the cause that further calls show, if they show one.

    A race is named where the interpreter found it. Calls that differ are named before a layout, and
    a layout before a kind of values.
    """
    if result.mismatch is None:
        return result
    if call.race:
        return _with_cause(result, _race(subject, call.race))
    if not _is_cheap(subject, inputs, call):
        return result
    try:
        result, differs = _check_determinism(subject, inputs, call, result)
        if differs:
            return _with_cause(result, Cause(code=CauseCode.NOT_DETERMINISTIC))
        cause = _layout_cause(subject, case) or _values_cause(subject, case)
        if cause is None:
            return _without_refuted(subject, case, result)
    except (VersionRaised, torch.OutOfMemoryError, UserFault):
        return result
    return _with_cause(result, cause)


def differ_beyond_rounding(a: torch.Tensor, b: torch.Tensor, tolerance: Tolerance | None) -> bool:
    """Return whether two outputs differ by more than atomics may round."""
    if is_bitwise_equal(a, b):
        return False
    if a.shape != b.shape or tolerance is None:
        return True
    rtol, atol = 2 * tolerance.rtol, 2 * tolerance.atol
    return not torch.allclose(a.double(), b.double(), rtol=rtol, atol=atol, equal_nan=True)


def _is_cheap(subject: Subject, inputs: CaseInputs, call: CallRecord) -> bool:
    elements = max(inputs.largest, *(t.numel() for t in call.outputs))
    few = not subject.is_interpreted or call.launches.programs <= MAX_PROGRAMS
    return elements <= MAX_ELEMENTS and few


def _with_cause(result: CaseResult, cause: Cause) -> CaseResult:
    assert result.mismatch is not None
    return result.evolve(mismatch=result.mismatch.evolve(cause=cause))


def _race(subject: Subject, error: KernelError) -> Cause:
    hint = subject.hint("calls differ")
    return Cause(
        code=CauseCode.RACE,
        advice=hint.advice if hint else None,
        cell_line=error.cell_line,
        file_line=error.file_line,
    )


def _check_determinism(
    subject: Subject, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> tuple[CaseResult, bool]:
    """Call the version again on the same inputs, and return whether its outputs differ much."""
    first, same = copy_outputs(call), True
    for _ in range(REPEATS):
        inputs.reset()
        more = _call(subject, inputs, call.outputs).outputs
        pairs: list[tuple[Any, Any]] = list(zip(first, more, strict=True))
        if any(differ_beyond_rounding(a, b, result.tolerance) for a, b in pairs):
            return result.evolve(deterministic=False), True
        same = same and all(is_bitwise_equal(a, b) for a, b in pairs)
    return result.evolve(deterministic=same), False


def _layout_cause(subject: Subject, case: Case) -> Cause | None:
    """Return a wrong stride as the cause where contiguous inputs give the right output."""
    if case.is_contiguous or not _passes(subject, case.evolve(layouts=())):
        return None
    tensor, layout = case.layouts[0]
    return Cause(
        code=CauseCode.WRONG_STRIDE,
        tensor=tensor,
        layout=layout,
        advice=f"pass every stride of {'each input' if tensor == '*' else tensor} to the kernel",
    )


def _values_cause(subject: Subject, case: Case) -> Cause | None:
    """Return the cause that large values show where plain ones give the right output."""
    if case.has_plain_values:
        return None
    is_plain_special = case.special == PLAIN
    if case.regime == "mean_heavy" and is_plain_special:
        cause: Cause | None = Cause(code=CauseCode.CANCELLATION)
    elif case.special in LARGE_SPECIALS or (is_plain_special and case.regime in LARGE_REGIMES):
        cause = subject.hint("overflow")
    else:
        return None
    plain = case.evolve(regime=NORMAL, special=PLAIN)
    return cause if cause and _passes(subject, plain) else None


def _without_refuted(subject: Subject, case: Case, result: CaseResult) -> CaseResult:
    """Return the result without a cause at the end of a row, if whole blocks are wrong as well."""
    cause = result.mismatch and result.mismatch.cause
    if not cause or cause.code not in ROW_END_CAUSES or not case.shape:
        return result
    whole = 1 << (case.shape[-1] - 1).bit_length()
    full = case.evolve(shape=(*case.shape[:-1], whole), size=None)
    if _passes(subject, full):
        return result
    assert result.mismatch is not None
    return result.evolve(mismatch=result.mismatch.evolve(cause=None))


def _call(subject: Subject, inputs: CaseInputs, like: tuple[Any, ...]) -> CallRecord:
    """Call the version, which is wrong, with its memory between guard bands."""
    return subject.call(inputs.arguments, like, options=CallOptions(guard=True), inputs=inputs)


def _passes(subject: Subject, case: Case) -> bool:
    """Return whether the version is right on another case."""
    inputs = subject.make_inputs(case)
    torch_outputs = oracle.compute_torch_outputs(subject.op, inputs.pristine)
    call = _call(subject, inputs, torch_outputs.outputs)
    result = compare_outputs(CaseOracle(subject, case, inputs, torch_outputs), call)
    return result.status is CaseStatus.PASSED
