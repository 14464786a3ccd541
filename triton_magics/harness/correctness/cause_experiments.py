"""Causes of a wrong output that only further calls show: races, layouts, kinds of values."""

from __future__ import annotations

import math
from typing import Any

import torch

from triton_magics.exception_text import one_line
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.block_shapes import list_whole
from triton_magics.harness.correctness.call_record import CallRecord, VersionRaised
from triton_magics.harness.correctness.case_hypotheses import (
    is_lost,
    of_cancellation,
    of_dtype,
    of_layout,
    of_overflow,
    of_values,
    with_plain_values,
)
from triton_magics.harness.correctness.case_inputs import CaseInputs, is_bitwise_equal
from triton_magics.harness.correctness.change_search import MOST_SEARCHES, search_change
from triton_magics.harness.correctness.computed_by import copy_outputs
from triton_magics.harness.correctness.further_calls import (
    call_guarded,
    passes,
    passes_apart,
    passes_without_gaps,
)
from triton_magics.harness.correctness.guard_bands import count_poison
from triton_magics.harness.correctness.hypotheses import (
    find_confirmed,
    fresh,
    vanishes,
)
from triton_magics.harness.correctness.near_inputs import CONSTANTS
from triton_magics.harness.correctness.part_alone import of_others
from triton_magics.harness.correctness.reach_causes import find_by_reach
from triton_magics.harness.correctness.rounding_experiment import (
    find_rounding,
    has_errors_of_formula,
)
from triton_magics.harness.correctness.special_values import (
    FIRST_REPEATED,
    SHARED_VALUES,
    SOME_ROWS,
    TRANSPOSE,
    special_of,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.correctness.value_ranges import find_range, find_width
from triton_magics.harness.load import UserFault
from triton_magics.model import (
    EVERY_INPUT,
    PLAIN,
    Case,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    KernelError,
    Mismatch,
    Tolerance,
    layout_text,
)

MAX_ELEMENTS = 300_000
MAX_PROGRAMS = 64  # in the interpreter, about a millisecond each
MAX_PROGRAMS_OF_FIRST = 256  # of the cases for which a change is searched
REPEATS = 2
MEMORY_CAUSES = (CauseCode.UNSET_MEMORY, CauseCode.NOT_DETERMINISTIC, CauseCode.PARTIAL_EXTENT)
LOADED_AGAIN = "right where the version was loaded again, wrong after its earlier calls"
_ROUNDED = 0.02  # more than two roundings to bfloat16
AROUND = "right where the memory around an input's elements holds 0, wrong where it holds NaN"
ROW_END_CAUSES = (CauseCode.WRONG_FILL, CauseCode.LAST_BLOCK)


def explain_wrong_values(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> CaseResult:
    """Return a wrong result with the cause that further calls show, if they show one.

    A race is named where the interpreter found it. Calls that differ are named before a kind of
    values, and a layout before both: memory beside a tensor is other in each call.
    """
    if case.special in SHARED_VALUES:  # further values could not be written into one input alone
        return _explain_shared_inputs(subject, case, inputs, call, result)
    if result.mismatch is None:
        return _name_layout(subject, case, inputs, call, result)
    try:
        if certain := _certain_cause(subject, case, call, result.mismatch):
            return _with_cause(result, certain)
        if not _is_cheap(subject, inputs, call):
            cause = search_change(subject, case, inputs.pristine, inputs.arguments, call.outputs)
            return _with_cause(result, cause) if cause else _name_access(result, call)
        result, differs = _check_determinism(subject, inputs, call, result)
        if _keeps_state(subject, case, differs):
            return _with_cause(result, _stale_state())
        if differs:
            layout = find_confirmed(subject, of_layout(subject, case, inputs.pristine))
            differing = _with_cause(result, layout or Cause(code=CauseCode.NOT_DETERMINISTIC))
            return _name_access(differing, call)
        cause = _find_cause(subject, case, inputs, call, result)
        if cause is None or (cause.code is CauseCode.REACH and not cause.as_if):
            result = _without_refuted(subject, case, result)  # the pattern may say more
            own = result.mismatch and result.mismatch.cause
            cause = own or cause
    except (VersionRaised, torch.OutOfMemoryError, UserFault):
        return result
    except Exception as error:  # noqa: BLE001 (the outputs are wrong, whatever an experiment does)
        return result.evolve(reason=f"the search for the cause raised {one_line(error)}")
    result = _with_cause(result, cause) if cause else result
    return result if cause and cause.as_if else _name_access(result, call)


def _stale_state() -> Cause:
    return Cause(code=CauseCode.STALE_STATE, evidence=LOADED_AGAIN)


def _certain_cause(
    subject: Subject, case: Case, call: CallRecord, mismatch: Mismatch
) -> Cause | None:
    """Return the cause that the accesses of the call show, or what its NaN show, if they do.

    Programs that race where a counter was left ahead do not where the version is loaded again.
    """
    if call.race:
        is_state = _keeps_state(subject, case, differs=True)
        return _stale_state() if is_state else _race(subject, call.race)
    if _is_unwritten(subject, call, mismatch):
        is_state = _keeps_state(subject, case, differs=False)  # such as the grid of a shorter call
        return _stale_state() if is_state else Cause(code=CauseCode.UNWRITTEN)
    is_certain = _is_of_nonfinite(mismatch) and passes(subject, with_plain_values(case))
    return (_fill_beside_infinity(subject, case) or mismatch.cause) if is_certain else None


def _fill_beside_infinity(subject: Subject, case: Case) -> Cause | None:
    """Return a wrong fill if the same values are right at whole blocks: no infinity is lost there.

    Beside a row of -inf a finite fill is the row's maximum.
    """
    shape = next(iter(list_whole(subject.op, case.shape)), None)
    if shape is None or subject.op.op_class == "elementwise":
        return None
    text = f"right at {'x'.join(map(str, shape))}, where no block is cut"
    cause = Cause(code=CauseCode.WRONG_FILL, evidence=text)
    whole = {"shape": shape, "size": None, "extent": ""}
    return find_confirmed(subject, [vanishes(cause, case, lambda c: c.evolve(**whole))])


def _is_of_nonfinite(mismatch: Mismatch) -> bool:
    """Return whether all that is wrong should be NaN or infinite, and is not."""
    observed = mismatch.cause and mismatch.cause.code in (CauseCode.NAN_LOST, CauseCode.REACH)
    return bool(observed) and not math.isfinite(mismatch.expected)


def _is_unwritten(subject: Subject, call: CallRecord, mismatch: Mismatch) -> bool:
    """Return whether all wrong elements are those that no kernel stored to.

    An interpreter records the stores. On a GPU NaN with every bit set shows it: no arithmetic of a
    GPU gives that.
    """
    at = mismatch.output
    if subject.is_interpreted:
        return at < len(call.unwritten) and call.unwritten[at] == mismatch.n_wrong
    return at < len(call.outputs) and count_poison(call.outputs[at]) == mismatch.n_wrong


def _keeps_state(subject: Subject, case: Case, differs: bool) -> bool:
    """Return whether the version is wrong on a case only after its earlier calls.

    Args:
        subject: the version.
        case: on which it was wrong.
        differs: calls on the same inputs differ. On a GPU one may be right by chance then. So may
            that of a kernel which times its configurations again and takes another.
    """
    varies = differs or subject.calls.tunes_itself
    may_be_chance = varies and not subject.is_interpreted
    is_enough = len(subject.explained) >= MOST_SEARCHES or bool(subject.known_changes)
    if may_be_chance or is_enough:
        return False
    if not differs and passes(subject, case):
        return False
    subject.calls.load_again()
    return passes(subject, case)


def _explain_shared_inputs(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> CaseResult:
    """Return a wrong result with the cause that inputs share memory, or one of their values.

    Sharing is the cause if the same values are right where each input has its own memory, also with
    the strides that they have here.
    """
    if result.mismatch is None:
        return result
    try:
        if passes(subject, case.evolve(special=PLAIN), inputs.pristine):
            is_shared = passes_apart(subject, case)
            return _with_cause(result, _shared_inputs(case) if is_shared else _strides_of(inputs))
        cause = find_confirmed(subject, of_dtype(subject, case, result))
        cause = cause or find_confirmed(subject, of_overflow(case, result))
    except (VersionRaised, torch.OutOfMemoryError, UserFault):
        return result
    if cause:
        return _with_cause(result, cause)
    return explain_contents(subject, case, inputs.pristine, call.outputs, result)


def _strides_of(inputs: CaseInputs) -> Cause:
    """Return wrong strides: of inputs that are right contiguous, and wrong apart with these."""
    own = dict.fromkeys(x.stride() for x in inputs.arguments if isinstance(x, torch.Tensor))
    strides = " and ".join(str(stride) for stride in own)
    text = f"right where each input is contiguous, wrong with the strides {strides}"
    advice = "pass the strides of each input to the kernel"
    return Cause(code=CauseCode.WRONG_STRIDE, evidence=text, advice=advice)


def _shared_inputs(case: Case) -> Cause:
    own = "one is given for several"
    if case.special == TRANSPOSE:
        own = "one is the transpose of another, in the same memory"
    if case.special == SOME_ROWS:
        own = "one holds rows of another, in the same memory"
    if case.special == FIRST_REPEATED:
        own = "one is a part of another, repeated"
    if (special := special_of(case.special)) and special.splits:
        own = "several are parts of one"
    text = f"right where each input is a tensor of its own, wrong where {own}"
    return Cause(code=CauseCode.REACH, evidence=text)


def _name_layout(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> CaseResult:
    """Return a result that an op's own check found wrong, with a layout as its cause, if it is."""
    is_wrong = result.status is CaseStatus.WRONG_VALUES and result.reason
    if not is_wrong or case.is_contiguous or not _is_cheap(subject, inputs, call):
        return result
    try:
        cause = find_confirmed(subject, of_layout(subject, case, inputs.pristine))
    except (VersionRaised, UserFault):
        return result
    if cause is None:
        return result
    name = "each input" if cause.tensor == EVERY_INPUT else cause.tensor
    text = cause.evidence or layout_text(str(name), cause.layout)
    return result.evolve(reason=f"{result.reason}; {text}")


def _find_cause(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, result: CaseResult
) -> Cause | None:
    """Return the cause that is confirmed: a layout, a kind of values, a change of the reference."""
    if _needs_zeros_around(subject, case):
        return Cause(code=CauseCode.MISSING_MASK, evidence=AROUND)
    layout = find_confirmed(subject, of_layout(subject, case, inputs.pristine))
    cause = (
        layout
        or find_confirmed(subject, of_values(subject, case, result))
        or find_confirmed(subject, of_dtype(subject, case, result))
    )
    if cause is None or cause is layout:
        cause = _prefer_formula(cause, search_change(
            subject, case, inputs.pristine, inputs.arguments, call.outputs
        ))  # fmt: skip
    if cause and cause.as_if and cause.code is CauseCode.REACH:
        return _with_confirmed(cause, _reach_cause(subject, case))
    return (
        cause
        or find_confirmed(subject, of_others(subject, case, result))
        or find_confirmed(subject, of_cancellation(subject, case))
        or find_confirmed(subject, of_overflow(case, result))
        or find_rounding(subject, case)
        or (find_width(subject, case) if case in subject.explained else None)
        or _reach_cause(subject, case)
        or (find_range(subject, case) if case in subject.explained else None)
    )


def _needs_zeros_around(subject: Subject, case: Case) -> bool:
    """Return whether the version is right where 0 stands around the elements of its inputs.

    Plain values have to be right so, too: a wrong stride reads what lies around as well, and where
    all elements are 0 that makes it right.
    """
    if not passes_without_gaps(subject, case):
        return False
    return case.has_plain_values or passes_without_gaps(subject, with_plain_values(case))


def _reach_cause(subject: Subject, case: Case) -> Cause | None:
    """Return the cause that the reach of the inputs shows, for the first cases."""
    return find_by_reach(subject, case) if case in subject.explained else None


def _with_confirmed(observed: Cause, reached: Cause | None) -> Cause:
    """Return what was observed with the code that the reach of the inputs confirms, if it does.

    A formula is none: what was observed suggests another cause.
    """
    if reached is None or reached.code in (CauseCode.REACH, CauseCode.WRONG_FORMULA):
        return observed
    is_part = reached.code is CauseCode.PARTIAL_EXTENT
    return observed.evolve(code=reached.code) if is_part else reached


def _prefer_formula(layout: Cause | None, change: Cause | None) -> Cause | None:
    """Return the layout as the cause, unless a formula of its own gives the output there."""
    if layout is None or (change and change.code is CauseCode.WRONG_FORMULA):
        return change or layout
    return layout


def explain_contents(
    subject: Subject,
    case: Case,
    pristine: tuple[Any, ...],
    outputs: tuple[torch.Tensor, ...],
    result: CaseResult,
) -> CaseResult:
    """Return a wrong result on other contents of a case, with its cause, if one is found."""
    if result.mismatch is None:
        return result
    names = subject.op.input_names(len(pristine))
    scalars = {
        n: x for n, x in zip(names, pristine, strict=True) if not isinstance(x, torch.Tensor)
    }
    case = case.evolve(scalars=tuple(scalars.items()))
    cause = search_change(subject, case, pristine, pristine, outputs)
    if cause is None and case.special in CONSTANTS and is_lost(result):
        text = f"NaN or infinity in {case.dtype} where all elements of the inputs are equal"
        cause = Cause(code=CauseCode.OVERFLOW, evidence=text)
    return _with_cause(result, cause) if cause else result


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
    is_first = len(subject.explained) < MOST_SEARCHES
    most = MAX_PROGRAMS_OF_FIRST if is_first else MAX_PROGRAMS
    few = not subject.is_interpreted or call.launches.programs <= most
    return elements <= MAX_ELEMENTS and few


def _with_cause(result: CaseResult, cause: Cause) -> CaseResult:
    assert result.mismatch is not None
    return result.evolve(mismatch=result.mismatch.evolve(cause=cause))


def _name_access(result: CaseResult, call: CallRecord) -> CaseResult:
    """Return the result with an access outside a tensor as the cause, if nothing else is."""
    cause = result.mismatch and result.mismatch.cause
    if call.outside is None or (cause and cause.code not in MEMORY_CAUSES):
        return result
    error = call.outside
    return _with_cause(
        result,
        Cause(
            code=CauseCode.OUT_OF_BOUNDS,
            evidence=error.message,
            cell_line=error.cell_line,
            file_line=error.file_line,
        ),
    )


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
        more = call_guarded(subject, inputs, call.outputs).outputs
        pairs: list[tuple[Any, Any]] = list(zip(first, more, strict=True))
        if any(differ_beyond_rounding(a, b, result.tolerance) for a, b in pairs):
            return result.evolve(deterministic=False), True
        same = same and all(is_bitwise_equal(a, b) for a, b in pairs)
    return result.evolve(deterministic=same), False


def _has_factor(subject: Subject, case: Case, cause: Cause) -> bool:
    """Return whether the output on other values is the reference's times the factor, or nearly."""
    inputs = subject.make_inputs(fresh(case))
    outputs = oracle.compute_torch_outputs(subject.op, inputs.pristine).outputs
    call = call_guarded(subject, inputs, outputs)
    pairs = [
        (got.double(), want.double() * (cause.factor or 1.0))
        for got, want in zip(call.outputs, outputs, strict=True)
        if is_floating(want)
    ]
    return all(bool((got - want).norm() <= _ROUNDED * want.norm()) for got, want in pairs)


def _without_refuted(subject: Subject, case: Case, result: CaseResult) -> CaseResult:
    """Return the result without the cause that the errors' pattern suggested, if calls refute it.

    A cause at the end of a row is none if whole blocks are wrong as well; a lower precision is none
    if the errors follow the inputs. A factor is none if it is another one with other values.
    """
    cause = result.mismatch and result.mismatch.cause
    is_refuted = cause and (
        (cause.code is CauseCode.LOWER_PRECISION and has_errors_of_formula(subject, case))
        or (cause.code is CauseCode.CONSTANT_FACTOR and not _has_factor(subject, case, cause))
    )
    if is_refuted:
        assert result.mismatch is not None
        return result.evolve(mismatch=result.mismatch.evolve(cause=None))
    if not cause or cause.code not in ROW_END_CAUSES or not case.shape:
        return result
    assert result.mismatch is not None
    whole = (*case.shape[:-1], 1 << (case.shape[-1] - 1).bit_length())
    hypothesis = vanishes(cause, case, lambda c: c.evolve(shape=whole, size=None))
    return result.evolve(
        mismatch=result.mismatch.evolve(cause=find_confirmed(subject, [hypothesis]))
    )
