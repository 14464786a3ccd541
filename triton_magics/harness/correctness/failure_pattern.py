"""Find what all wrong cases of a validation have in common, and no right one has.

Many cases share much by chance. So further inputs are tried that have about half of what the wrong
ones share: each refutes one half or the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.correctness.launch_cases import LaunchPlan
from triton_magics.harness.correctness.launch_relations import Kind, Relation
from triton_magics.harness.correctness.special_values import SHARED_VALUES
from triton_magics.model import (
    NORMAL,
    PLAIN,
    Case,
    CaseResult,
    CaseStatus,
    FailurePattern,
    source_lines,
)

MIN_FAILED, MIN_PASSED = 2, 10  # with fewer cases too much is common by chance
MAX_TRIALS = 10

Passes = Callable[[Case], bool | None]  # None: the case could not be run


def find_pattern(
    results: Sequence[CaseResult], launches: LaunchPlan, ref: VersionRef, passes: Passes
) -> FailurePattern | None:
    """Return the simplest condition that all failed cases have and no passed one, if there is one.

    Args:
        results: of all cases.
        launches: what the launches of the version look like.
        ref: the version, to name lines.
        passes: runs a further case.
    """
    failed = [r.case for r in results if r.status.failed]
    passed = [r.case for r in results if r.status is CaseStatus.PASSED]
    if not failed or len(passed) < MIN_PASSED:
        return None
    shared = set.intersection(*(_conditions(case, launches) for case in failed))
    for case in passed:
        shared -= _conditions(case, launches)
    narrowed = _narrow(_Shared(shared, tuple(failed), len(passed)), launches, passes)
    sure = [each for each in narrowed.conditions if _is_sure(each, narrowed.failed)]
    if not sure:
        return None
    simplest = min(sure, key=lambda each: (each.kind, len(each.text), each.text))
    return FailurePattern(
        condition=_describe(simplest, ref),
        n_failed=len(narrowed.failed),
        n_passed=narrowed.n_passed,
    )


@dataclass(frozen=True)
class _Shared:
    """Conditions that these failed cases have, and none of so many passed ones."""

    conditions: set[Relation]
    failed: tuple[Case, ...]
    n_passed: int

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """Return the shapes of the failed cases."""
        return {case.shape for case in self.failed}


def _narrow(shared: _Shared, launches: LaunchPlan, passes: Passes) -> _Shared:
    """Try inputs that have about half of the conditions; the last one has to fail once more."""
    offered = _with_values_of(shared.failed[0], launches.cheap)
    left = [(case, _conditions(case, launches)) for case in offered]
    for _ in range(MAX_TRIALS):
        n = len(shared.conditions)
        counts = [
            len(own & shared.conditions) if case.shape not in shared.shapes else 0
            for case, own in left
        ]
        options = [i for i, k in enumerate(counts) if 0 < k < n]
        if not options and len(shared.shapes) < MIN_FAILED:
            options = [i for i, k in enumerate(counts) if k == n > 0]
        if not options:
            break
        case, own = left.pop(min(options, key=lambda i: abs(n - 2 * counts[i])))
        outcome = passes(case)
        if outcome:
            shared = replace(
                shared, conditions=shared.conditions - own, n_passed=shared.n_passed + 1
            )
        elif outcome is False:
            shared = replace(
                shared, conditions=shared.conditions & own, failed=(*shared.failed, case)
            )
    return shared


def _is_sure(condition: Relation, failed: Sequence[Case]) -> bool:
    """Return whether so many cases are enough for a condition.

    A relation of a length may be chance where all of them have one shape. A path is not, nor are
    blocks that do not cover a length.
    """
    if condition.kind is Kind.VALUE:
        return len(failed) >= MIN_FAILED
    return condition.kind <= Kind.UNCOVERED or len({case.shape for case in failed}) >= MIN_FAILED


def _with_values_of(like: Case, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield cases with the kind of values of a failed one, but for inputs that share memory."""
    for case in cases:
        is_shared = case.special in SHARED_VALUES or like.special in SHARED_VALUES
        yield case if is_shared else case.evolve(regime=like.regime, special=like.special)


def _conditions(case: Case, launches: LaunchPlan) -> set[Relation]:
    """Return what holds for a case: its values, and what its launches look like."""
    values = (Relation(Kind.VALUE, text) for text in _values_of(case))
    return {*values, *launches.relations_of(case)}


def _values_of(case: Case) -> Iterator[str]:
    """Yield the values of a case that a plan chooses."""
    yield case.dtype
    yield from (f"{name} {layout}" for name, layout in case.layouts)
    yield from (f"{name}={value}" for name, value in case.scalars)
    yield from (values for values in (case.regime, case.special) if values not in (NORMAL, PLAIN))


def _describe(condition: Relation, ref: VersionRef) -> str:
    """Return a condition for readers: a step with the line that it comes to."""
    if condition.line is None:
        return condition.text
    code = source_lines(ref.source)[condition.line - 1].strip()
    line = f"cell line {ref.cell_line(condition.line) or condition.line}"
    way = f"one way of {line}" if condition.kind is Kind.BRANCH else f"{line} runs"
    return f"{way}: `{code}`"


__all__ = ["find_pattern"]
