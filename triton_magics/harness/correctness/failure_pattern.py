"""What all wrong cases of a validation have in common, and no right one has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from triton_magics.execution.job_refs import VersionRef
from triton_magics.model import (
    NORMAL,
    PLAIN,
    Case,
    CaseResult,
    CaseStatus,
    FailurePattern,
    source_lines,
)

MIN_FAILED, MIN_PASSED = 2, 10  # of fewer cases too much is common by chance
_STEP = re.compile(r"line (\d+) to (\d+)\b")
_SWITCHES = re.compile(r"^\w+\([^)]*\)$")
_OTHER_TWO = ", "


def find_pattern(
    results: Sequence[CaseResult],
    relations_of: Callable[[Case], frozenset[str] | None],
    ref: VersionRef,
) -> FailurePattern | None:
    """Return the simplest condition that all failed cases have and no passed one, if there is one.

    Args:
        results: of all cases.
        relations_of: what the launches of a case look like; None where that is not known.
        ref: the version, to name lines.
    """
    failed = [r.case for r in results if r.status.failed]
    passed = [r.case for r in results if r.status is CaseStatus.PASSED]
    if not failed or len(passed) < MIN_PASSED:
        return None
    # One case has much by chance, but for what it was added for.
    named = {failed[0].extent} & (relations_of(failed[0]) or set())
    if len(failed) < MIN_FAILED and not named:
        return None
    have = [{*_values_of(c)} | (relations_of(c) or set()) for c in failed]
    others = set[str]().union(*({*_values_of(c)} | (relations_of(c) or set()) for c in passed))
    common = (set.intersection(*have) if len(failed) > 1 else named) - others
    if not common:
        return None
    text = min(common, key=lambda condition: (*_rank(condition), condition))
    return FailurePattern(
        condition=_describe(text, ref), n_failed=len(failed), n_passed=len(passed)
    )


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
