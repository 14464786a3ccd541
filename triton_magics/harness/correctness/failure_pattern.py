"""Find what all wrong cases of a validation have in common, and no right one has.

Many cases share much by chance, so further inputs are tried. First, which values a wrong case
needs (`needed_values`). If there are right cases with these, too, what their launches look like is
compared: inputs that have about half of what the wrong ones share refute one half each. What is
left has to hold in inputs that have little else in common with a wrong one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.correctness.launch_cases import LaunchPlan
from triton_magics.harness.correctness.launch_relations import Kind, Relation
from triton_magics.harness.correctness.needed_values import (
    Needed,
    Passes,
    find_needed,
    values_of,
)
from triton_magics.harness.correctness.special_values import SHARED_VALUES
from triton_magics.model import PLAIN, Case, CaseResult, CaseStatus, FailurePattern, source_lines

MIN_FAILED, MIN_PASSED = 2, 10  # with fewer cases too much is common by chance
MIN_SHAPES = 3  # of failed cases that have one length in common
MAX_TRIALS = 12  # of cases with a part of what is shared
N_CONFIRM = 3  # of cases with all of it; as many without
MAX_S = 20.0  # of all trials; after it there is no pattern
_FEW_ELEMENTS = 2**17  # of a planned case that is tried

_Rank = Callable[[Case, set[Relation]], int | None]  # of a case and its conditions


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
    search = _Search(launches, failed, passed, passes)
    plainest = min(failed, key=lambda case: len(values_of(case)))
    if passes(plainest) is False:
        like = [*failed, *(r.case for r in results)]
        search.needed, plainest = find_needed(plainest, like, search.probe)
        offered = _offer(plainest, results, launches)
        search.offered = [case for case in offered if case not in failed]
        texts = _narrow(search, ref)
    else:  # further calls tell nothing
        texts = _compare_alone(search, ref)
    if not texts or search.is_late:
        return None
    return FailurePattern(
        condition=" and ".join(texts), n_failed=len(search.failed), n_passed=len(search.passed)
    )


@dataclass
class _Search:
    """Cases that failed, that passed, and that can be tried.

    Attributes:
        launches: what they look like.
        failed, passed: the cases of a validation, and those tried.
        passes: runs a case.
        offered: cases to be tried.
        needed: values that a failure needs; cases without them tell nothing more.
        probed: failed cases that were tried to tell what is needed.
    """

    launches: LaunchPlan
    failed: list[Case]
    passed: list[Case]
    passes: Passes
    offered: Sequence[Case] = ()
    needed: tuple[Needed, ...] = ()
    probed: list[Case] = field(default_factory=list)
    _end_s: float = field(default_factory=lambda: time.monotonic() + MAX_S)

    @property
    def is_late(self) -> bool:
        """Return whether the time for trials is over."""
        return time.monotonic() > self._end_s

    def probe(self, case: Case) -> bool | None:
        """Run a case of which only the values count: its launches need not be listed."""
        outcome = None if self.is_late else self.passes(case)
        if outcome is False:
            self.probed.append(case)
        return outcome

    def has_needed(self, case: Case) -> bool:
        """Return whether a case has all values that a failure needs."""
        return all(value.is_of(case) for value in self.needed)

    @property
    def is_enough(self) -> bool:
        """Return whether the needed values alone tell failed cases from passed ones."""
        return bool(self.needed) and not any(map(self.has_needed, self.passed))

    def conditions_of(self, case: Case) -> set[Relation]:
        """Return what holds for a case but for its values."""
        rank = Relation(Kind.VALUE, f"inputs of {len(case.shape)} dimensions")
        return {rank, *self.launches.relations_of(case)}

    def find_shared(self) -> set[Relation]:
        """Return what all failed cases have, and no passed one with the needed values."""
        failed = set.intersection(*map(self.conditions_of, self.failed))
        return failed.difference(*map(self.conditions_of, filter(self.has_needed, self.passed)))

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """Return the shapes of the failed cases."""
        return {case.shape for case in self.failed}

    def is_new(self, case: Case) -> bool:
        """Return whether a case has another shape than the failed ones, with no new length of 1.

        Where there is one row or one scale, much is right by chance.
        """
        least = min((2, *self.failed[0].shape))
        return case.shape not in self.shapes and min(case.shape, default=least) >= least

    def is_sure(self, condition: Relation) -> bool:
        """Return whether there are enough cases for a condition.

        A relation of a length may be chance where cases of few shapes have one length in common. A
        path is not, nor are blocks that do not cover a length.
        """
        if condition.kind is Kind.VALUE:
            probed = [condition in self.conditions_of(case) for case in self.probed]
            return all(probed) and len(self.failed) + len(probed) >= MIN_FAILED
        lengths = zip(*(case.shape for case in self.failed), strict=False)
        have_one = any(len({*each}) == 1 and max(each) > 1 for each in lengths)
        is_any = len(self.shapes) >= MIN_SHAPES or not have_one
        return condition.kind <= Kind.UNCOVERED or (is_any and len(self.shapes) >= MIN_FAILED)

    def try_best(self, rank: _Rank) -> bool:
        """Try the case of the least rank; return whether there is one."""
        usable = (case for case in self.offered if self.has_needed(case))
        ranks = {case: rank(case, self.conditions_of(case)) for case in usable}
        ranked = {case: own for case, own in ranks.items() if own is not None}
        if not ranked or self.is_late:
            return False
        best = min(ranked, key=lambda case: ranked[case])
        self.offered = [case for case in self.offered if case != best]
        outcome = self.passes(best)
        if outcome is not None:
            (self.passed if outcome else self.failed).append(best)
        return True


def _narrow(search: _Search, ref: VersionRef) -> list[str]:
    """Return the needed values, or with them the condition that is left after trials."""
    first = search.conditions_of(search.failed[0])
    if not all(map(search.has_needed, search.failed)):
        return []  # several faults, or one with several conditions
    values = [value.text for value in search.needed]
    for _ in range(N_CONFIRM * search.is_enough):
        search.try_best(_by_all(search, set(), first))
    if search.is_enough:
        search.failed += search.probed
        return values if len(search.failed) >= MIN_FAILED else []
    for rank_by, most in ((_by_part, MAX_TRIALS), (_by_all, N_CONFIRM), (_by_none, N_CONFIRM)):
        for _ in range(most):
            shared = search.find_shared()
            if not shared or not search.try_best(rank_by(search, shared, first)):
                break
    is_open = search.try_best(_by_part(search, search.find_shared(), first))
    sure = [each for each in search.find_shared() if search.is_sure(each)]
    return [*values, _describe(min(sure, key=_simplicity), ref)] if sure and not is_open else []


def _by_part(search: _Search, shared: set[Relation], _: set[Relation]) -> _Rank:
    """Rank cases of other shapes by how near they come to half of what is shared."""

    def rank(case: Case, own: set[Relation]) -> int | None:
        n = len(own & shared)
        is_part = 0 < n < len(shared) and search.is_new(case)
        return abs(len(shared) - 2 * n) if is_part else None

    return rank


def _by_all(search: _Search, shared: set[Relation], first: set[Relation]) -> _Rank:
    """Rank cases with all that is shared by what else they share with a failed one."""
    is_few = len(search.shapes) < MIN_SHAPES

    def rank(case: Case, own: set[Relation]) -> int | None:
        is_new = search.is_new(case)
        is_usable = shared <= own and (is_new or is_few)
        return len(own & first) + len(first) * (not is_new) if is_usable else None

    return rank


def _by_none(search: _Search, shared: set[Relation], first: set[Relation]) -> _Rank:
    """Rank cases without what is shared by what else they do not share with a failed one."""

    def rank(case: Case, own: set[Relation]) -> int | None:
        is_usable = len(own) > 1 and search.is_new(case) and shared.isdisjoint(own)
        return -len(own & first) if is_usable else None

    return rank


def _compare_alone(search: _Search, ref: VersionRef) -> list[str]:
    """Return a value or a path that several failed cases have and no passed one."""
    if len(search.failed) < MIN_FAILED:
        return []
    values = set.intersection(*({*values_of(case)} for case in search.failed))
    if values := values.difference(*map(values_of, search.passed)):
        return [min((value.text for value in values), key=lambda text: (len(text), text))]
    steps = [each for each in search.find_shared() if each.kind < Kind.UNCOVERED]
    return [_describe(min(steps, key=_simplicity), ref)] if steps else []


def _offer(like: Case, results: Sequence[CaseResult], launches: LaunchPlan) -> Iterator[Case]:
    """Yield further cases with the kind of values of a failed one: cheap ones, then planned ones.

    Inputs that share memory stay as they are. A dtype for which no case has the special values may
    not have them: twice the largest number is infinite.
    """
    dtypes = {r.case.dtype for r in results if like.special in (PLAIN, r.case.special)}
    planned = (r.case for r in results if r.status is CaseStatus.NOT_RUN)
    few = (case for case in planned if math.prod(case.shape) <= _FEW_ELEMENTS)
    for case in (*launches.cheap, *few):
        is_shared = case.special in SHARED_VALUES or like.special in SHARED_VALUES
        if is_shared:
            yield case
        elif case.dtype in dtypes:
            yield case.evolve(regime=like.regime, special=like.special)


def _simplicity(condition: Relation) -> tuple[int, int, str]:
    return condition.kind, len(condition.text), condition.text


def _describe(condition: Relation, ref: VersionRef) -> str:
    """Return a condition for readers: a step with the line that it comes to."""
    if condition.line is None:
        return condition.text
    code = source_lines(ref.source)[condition.line - 1].strip()
    line = f"cell line {ref.cell_line(condition.line) or condition.line}"
    way = f"one way of {line}" if condition.kind is Kind.BRANCH else f"{line} runs"
    return f"{way}: `{code}`"


__all__ = ["find_pattern"]
