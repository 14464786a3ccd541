"""Find what all wrong cases of a validation have in common, and no right one has.

Many cases share much by chance. So further inputs are tried that have about half of what the wrong
ones share: each refutes one half or the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.correctness.launch_cases import LaunchPlan
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
_STEP = re.compile(r"line (\d+) to (\d+)\b")
_SWITCHES = re.compile(r"^\w+\([^)]*\)$")
_OTHER_TWO = ", "
_UNCOVERED = re.compile(r"(the last block|all blocks) of \w+ on axis \d (is past|end before)")

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
    named = sorted(narrowed.conditions, key=lambda condition: (*_rank(condition), condition))
    text = next((condition for condition in named if _is_sure(condition, narrowed.failed)), None)
    if text is None:
        return None
    return FailurePattern(
        condition=_describe(text, ref), n_failed=len(narrowed.failed), n_passed=narrowed.n_passed
    )


@dataclass(frozen=True)
class _Shared:
    """Conditions that these failed cases have, and none of so many passed ones."""

    conditions: set[str]
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


def _is_sure(condition: str, failed: Sequence[Case]) -> bool:
    """Return whether so many cases are enough for a condition.

    A relation of a length may be chance where all of them have one shape. A path is not, nor are
    programs that do not cover a length.
    """
    if _rank(condition)[0] == 0:
        return len(failed) >= MIN_FAILED
    is_path = _rank(condition)[0] in (1, 2)
    return (
        is_path
        or bool(_UNCOVERED.search(condition))
        or len({case.shape for case in failed}) >= MIN_FAILED
    )


def _with_values_of(like: Case, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield cases with the kind of values of a failed one, but for inputs that share memory."""
    for case in cases:
        is_shared = case.special in SHARED_VALUES or like.special in SHARED_VALUES
        yield case if is_shared else case.evolve(regime=like.regime, special=like.special)


def _conditions(case: Case, launches: LaunchPlan) -> set[str]:
    """Return what holds for a case: its values, and what its launches look like."""
    return {*_values_of(case)} | (launches.relations_of(case) or set())


def _values_of(case: Case) -> Iterator[str]:
    """Yield the values of a case that a plan chooses."""
    yield case.dtype
    yield from (f"{name} {layout}" for name, layout in case.layouts)
    yield from (f"{name}={value}" for name, value in case.scalars)
    yield from (values for values in (case.regime, case.special) if values not in (NORMAL, PLAIN))


def _rank(condition: str) -> tuple[int, int]:
    """Return the order in which conditions are preferred: values of a case, switches, lines."""
    if ": " not in condition:
        return (1 if _SWITCHES.match(condition) else 0), len(condition)
    if _STEP.search(condition):
        return 2, 0
    return (4 if _OTHER_TWO in condition else 3), len(condition)


def _describe(condition: str, ref: VersionRef) -> str:
    """Return a condition for readers: a step with the line that it comes to."""
    step = _STEP.search(condition)
    if step is None:
        return condition
    start, end = int(step[1]), int(step[2])
    line = source_lines(ref.source)[end - 1].strip()
    number = ref.cell_line(end) or end
    way = f"one way of cell line {number}" if start == end else f"cell line {number} runs"
    return f"{way}: `{line}`"


__all__ = ["find_pattern"]
