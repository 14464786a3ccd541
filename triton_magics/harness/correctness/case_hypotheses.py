"""Hypotheses on why a case is wrong: its layouts, its values, its dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.block_shapes import is_affordable, list_whole
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.further_calls import SMALLER, passes, stays_finite
from triton_magics.harness.correctness.hypotheses import (
    AllRight,
    Hypothesis,
    Trial,
    fresh,
    vanishes,
)
from triton_magics.harness.correctness.reference_changes import HALF_TYPES, subtracts_maximum
from triton_magics.harness.correctness.reference_trace import TracedOperation, trace_reference
from triton_magics.harness.correctness.rounding_experiment import ErrorsChange
from triton_magics.harness.correctness.special_values import (
    FAR_ROWS,
    MINUS_INF_ALONE,
    special_of,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.model import EVERY_INPUT, NORMAL, PLAIN, Case, CaseResult, Cause, CauseCode

SHIFTED_REGIMES = ("mean_heavy", "negative")
LARGE_REGIMES = ("large", "x10", "shifted")
ROWS_APART = ("rows unlike their neighbours", FAR_ROWS)
LARGE_SPECIALS = ("huge element", *ROWS_APART)
SMALL_ERROR = 0.05  # of the worst element, relative


def of_layout(subject: Subject, case: Case, values: tuple[Any, ...]) -> Iterator[Hypothesis]:
    """Yield a wrong stride where the same contiguous inputs give the right output.

    Of several tensors it names one whose layout alone makes the output wrong, or those of which all
    are needed for that. A stride is wrong with any value of the op's parameters.
    """
    if case.is_contiguous or not passes(subject, case.evolve(layouts=()), values):
        return
    cause = _cause_of_layouts(_needed_layouts(subject, case, values))
    hypothesis = vanishes(cause, case, lambda c: c.evolve(layouts=()))
    first = tuple((key, subject.op.scalars.get(key, (x,))[0]) for key, x in case.scalars)
    usual = (Trial(case.evolve(scalars=first)),) if first != case.scalars else ()
    yield replace(hypothesis, wrong=(*hypothesis.wrong, *usual))


def _needed_layouts(
    subject: Subject, case: Case, values: tuple[Any, ...]
) -> tuple[tuple[str, str], ...]:
    """Return the layout that makes the output wrong alone, else a few that do so together."""

    def is_wrong(layouts: tuple[tuple[str, str], ...]) -> bool:
        return not passes(subject, case.evolve(layouts=layouts), values)

    several = len(case.layouts) > 1
    if alone := next((entry for entry in case.layouts if several and is_wrong((entry,))), None):
        return (alone,)
    needed = case.layouts
    for entry in case.layouts:
        fewer = tuple(e for e in needed if e != entry)
        if len(fewer) > 1 and is_wrong(fewer):
            needed = fewer
    return needed


def _cause_of_layouts(needed: tuple[tuple[str, str], ...]) -> Cause:
    names = [name for name, _ in needed]
    if len(needed) == 1:
        tensor, layout = needed[0]
        name = "each input" if tensor == EVERY_INPUT else tensor
        advice = f"pass every stride of {name} to the kernel, or make it contiguous in the wrapper"
        return Cause(code=CauseCode.WRONG_STRIDE, tensor=tensor, layout=layout, advice=advice)
    none = "neither is" if len(needed) == 2 else "none is"
    theirs = ", ".join(f"{name} {layout}" for name, layout in needed)
    return Cause(
        code=CauseCode.WRONG_STRIDE,
        evidence=f"right where {' or '.join(names)} is contiguous, wrong where {none} ({theirs})",
        advice=f"pass the strides of each of {' and '.join(names)} to the kernel",
    )


def of_values(subject: Subject, case: Case, result: CaseResult) -> Iterator[Hypothesis]:
    """Yield the cause that large values show where plain ones give the right output."""
    if case.has_plain_values:
        return
    if case.regime in SHIFTED_REGIMES and case.special != PLAIN:
        shifted = case.evolve(special=PLAIN)
        case = case if passes(subject, shifted) else shifted
    is_plain_special = case.special == PLAIN
    if case.regime in SHIFTED_REGIMES and is_plain_special:
        if _has_spread(subject, case):
            hypothesis = vanishes(Cause(code=CauseCode.CANCELLATION), case, with_plain_values)
            yield replace(hypothesis, wrong=(*hypothesis.wrong, *_at_whole_blocks(subject, case)))
    elif case.special in LARGE_SPECIALS or (is_plain_special and case.regime in LARGE_REGIMES):
        yield from _of_maximum(subject, case, result)


def _of_maximum(subject: Subject, case: Case, result: CaseResult) -> Iterator[Hypothesis]:
    """Yield a missing maximum where the reference subtracts one.

    The source shows it, or else NaN does, which large values give in every row.
    """
    assert result.mismatch is not None
    if not any(subtracts_maximum(o) for o in _trace(subject, case)):
        return
    if hint := subject.hint("overflow"):
        yield vanishes(hint, case, with_plain_values)
        return
    dtype = "float32" if "float32" in subject.op.dtypes else case.dtype
    heavy = case.evolve(regime="mean_heavy", special=PLAIN, dtype=dtype)
    is_other = math.isfinite(result.mismatch.got) or case.special in ROWS_APART
    if not is_other and not operators.skips(subject.op, heavy.regime, dtype):
        cause = Cause(code=CauseCode.MISSING_MAXIMUM)
        hypothesis = vanishes(cause, case, with_plain_values)
        yield replace(hypothesis, wrong=(*hypothesis.wrong, Trial(fresh(heavy))))


def of_cancellation(subject: Subject, case: Case) -> Iterator[Hypothesis]:
    """Yield a cancellation where large means alone give a wrong output of a norm.

    Plain values are right there, and whole blocks are wrong as well.
    """
    if case.has_plain_values or not _has_spread(subject, case):
        return
    dtype = "float32" if "float32" in subject.op.dtypes else case.dtype
    heavy = case.evolve(regime=SHIFTED_REGIMES[0], special=PLAIN, layouts=(), dtype=dtype)
    if heavy.regime not in subject.op.skip_values:
        hypothesis = vanishes(Cause(code=CauseCode.CANCELLATION), heavy, with_plain_values)
        yield replace(hypothesis, wrong=(*hypothesis.wrong, *_at_whole_blocks(subject, heavy)))


def of_overflow(case: Case, result: CaseResult) -> Iterator[Hypothesis]:
    """Yield an overflow where finite inputs give NaN: and plain ones, or smaller ones, none.

    NaN of memory stays, whatever the values.
    """
    assert result.mismatch is not None
    named = result.mismatch.cause
    special = special_of(case.special)
    has_nan = special and not special.is_finite and case.special not in MINUS_INF_ALONE
    if not is_lost(result) or has_nan:
        return
    if case.has_plain_values and (not named or named.code is CauseCode.UNSET_MEMORY):
        smaller = f"none where the inputs are {SMALLER:g} times smaller"
        text = f"NaN or infinity in {case.dtype}, and {smaller}"
        cause = Cause(code=CauseCode.OVERFLOW, evidence=text)
        right, wrong = (StaysFinite(case), StaysFinite(fresh(case))), (Trial(fresh(case)),)
        yield Hypothesis(cause, right=right, wrong=wrong)
    if case.has_plain_values or named:
        return
    text = f"NaN or infinity in {case.dtype}, and plain values of this shape are right"
    yield vanishes(Cause(code=CauseCode.OVERFLOW, evidence=text), case, with_plain_values)


@dataclass(frozen=True)
class StaysFinite:
    """The prediction that smaller values of a case give no NaN or infinity in place of numbers."""

    case: Case

    def is_right(self, subject: Subject) -> bool:
        """Return whether they give none; not if the version raises."""
        try:
            return stays_finite(subject, self.case)
        except (VersionRaised, UserFault):
            return False


def of_dtype(subject: Subject, case: Case, result: CaseResult) -> Iterator[Hypothesis]:
    """Yield a lower precision where the same case is right in float32.

    The error must be one of rounding, or infinite with plain values; or else plain values of the
    dtype must be right. Whole blocks round as well, so not all of them may be right.
    """
    assert result.mismatch is not None
    if case.dtype not in HALF_TYPES or "float32" not in subject.op.dtypes:
        return
    is_nan = math.isnan(result.mismatch.got) and not case.has_plain_values  # of an infinity
    overflows = is_lost(result) and (is_nan or math.isinf(result.mismatch.got))
    error = abs(result.mismatch.got - result.mismatch.expected)
    small = error < SMALL_ERROR * abs(result.mismatch.expected)
    if not small and case.has_plain_values and not overflows:
        return
    kind = "overflows in" if overflows else "is rounded to"
    dtype = f"an intermediate value {kind} {case.dtype}"
    cause = Cause(code=CauseCode.LOWER_PRECISION, dtype=dtype)
    hypothesis = vanishes(cause, case, lambda c: c.evolve(dtype="float32"))
    is_of_values = not small and not case.has_plain_values
    plain = (Trial(fresh(with_plain_values(case))),) if is_of_values else ()
    whole = _at_whole_blocks(subject, case)
    whole += tuple(replace(trial, case=fresh(trial.case)) for trial in whole)
    yield replace(
        hypothesis,
        right=(*hypothesis.right, *plain, ErrorsChange(case)),
        wrong=(*hypothesis.wrong, *((AllRight(whole),) if whole else ())),
    )


def is_lost(result: CaseResult) -> bool:
    """Return whether the worst element is NaN or infinite, and should not be."""
    worst = result.mismatch
    return worst is not None and math.isfinite(worst.expected) and not math.isfinite(worst.got)


def with_plain_values(case: Case) -> Case:
    """Return the case with the values that its op makes."""
    return case.evolve(regime=NORMAL, special=PLAIN)


def _at_whole_blocks(subject: Subject, case: Case) -> tuple[Trial, ...]:
    """Return the call at whole blocks: lanes past the end of a row look like a cancellation."""
    shapes = list_whole(subject.op, case.shape)[:1]
    cases = (case.evolve(shape=shape, size=None, extent="") for shape in shapes)
    return tuple(Trial(each) for each in cases if is_affordable(subject, each))


def _has_spread(subject: Subject, case: Case) -> bool:
    """Return whether the reference takes the root of a mean, as a norm does."""
    names = {o.name for o in _trace(subject, case)}
    return "mean" in names and bool(names & {"rsqrt", "sqrt"})


def _trace(subject: Subject, case: Case) -> list[TracedOperation]:
    inputs = subject.make_inputs(case).pristine
    return trace_reference(subject.op, tuple(oracle.upcast(inputs)))
