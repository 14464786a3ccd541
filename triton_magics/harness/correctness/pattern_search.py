"""Narrow down what the failed cases with the needed values share, by further cases.

Cases that have about half of what is shared refute one half each. What is left has to hold in
inputs that have little else in common with a wrong one.

A passed case refutes a condition that it has, unless it may be right by chance: with zeros, or with
one row. So it is tried with the values of a wrong case.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from triton_magics.harness.correctness.launch_cases import LaunchPlan
from triton_magics.harness.correctness.launch_relations import Kind, Relation
from triton_magics.harness.correctness.layout_pairs import LayoutPair
from triton_magics.harness.correctness.needed_values import Needed, Passes
from triton_magics.harness.correctness.special_values import SHARED_VALUES
from triton_magics.model import PLAIN, Case, CaseResult, CaseStatus

MIN_FAILED = 2  # with fewer cases too much is common by chance
MIN_SHAPES = 3  # of failed cases that have one length in common
MAX_TRIALS = 12  # of cases with a part of what is shared; of passed ones with other values
N_CONFIRM = 3  # of cases with all of it; as many without
MIN_PARTLY, MIN_SHARE = 4, 0.5  # of wrong cases, where right ones have the condition, too
_FEW_ELEMENTS = 2**17  # of a planned case that is tried

_Rank = Callable[[Case, set[Relation]], int | None]  # of a case and its conditions


class Trials:
    """Runs further cases until their time is over."""

    def __init__(self, passes: Passes, limit_s: float) -> None:
        """Begin now.

        Args:
            passes: runs a case.
            limit_s: wall time of all of them.
        """
        self._passes, self._end_s = passes, time.monotonic() + limit_s

    @property
    def is_late(self) -> bool:
        """Return whether the time is over."""
        return time.monotonic() > self._end_s

    def __call__(self, case: Case) -> bool | None:
        """Return whether a case is right; None if it can't run, or no time is left."""
        return None if self.is_late else self._passes(case)


@dataclass(frozen=True)
class Explanation:
    """A condition under which a version is wrong.

    Attributes:
        launches: what cases look like.
        needed: values that a failure needs.
        relation: what its launches need to have, too; None if the values are enough.
        failed, passed: cases of a validation, and those tried.
        probed: failed cases that differ in values alone from one that they stand for.
        hidden: passed cases whose values hide the failure.
    """

    launches: LaunchPlan
    needed: tuple[Needed | LayoutPair, ...]
    relation: Relation | None
    failed: tuple[Case, ...]
    probed: tuple[Case, ...]
    passed: tuple[Case, ...]
    hidden: frozenset[Case]

    def is_of(self, case: Case) -> bool:
        """Return whether a case has the condition."""
        has_values = all(value.is_of(case) for value in self.needed)
        return has_values and self.relation in (None, *conditions_of(case, self.launches))

    @property
    def wrong(self) -> list[Case]:
        """Return the failed cases, with those probed that have the condition."""
        return [*dict.fromkeys((*self.failed, *filter(self.is_of, self.probed)))]

    @property
    def n_right(self) -> int:
        """Return the number of passed cases with the condition that do not hide the failure."""
        return sum(self.is_of(case) and case not in self.hidden for case in self.passed)

    @property
    def is_clear(self) -> bool:
        """Return whether no passed case has the condition, or many more failed ones have."""
        n = len(self.failed)
        is_most = n >= MIN_PARTLY and n / (n + self.n_right) >= MIN_SHARE
        return is_most or not self.n_right

    def leave_out(self, case: Case) -> Case:
        """Return a case without the first of the needed values, if it has the condition."""
        return self.needed[0].leave_out(case) if self.needed and self.is_of(case) else case


def conditions_of(case: Case, launches: LaunchPlan) -> set[Relation]:
    """Return what holds for a case but for its values."""
    rank = Relation(Kind.VALUE, f"inputs of {len(case.shape)} dimensions")
    return {rank, *launches.relations_of(case)}


@dataclass
class Search:
    """Cases that failed, that passed, and that can be tried.

    Attributes:
        launches: what they look like.
        needed: values that a failure needs; cases without them tell nothing more.
        plainest: a failed case with nothing else.
        passed: the passed cases of a validation, and those tried.
        trial: runs a case.
        failed: the failed cases with the needed values, and those tried.
        offered: cases to be tried.
        probed: failed cases that were tried to tell what is needed.
        hidden: passed cases whose values hide the failure.
    """

    launches: LaunchPlan
    needed: tuple[Needed | LayoutPair, ...]
    plainest: Case
    passed: list[Case]
    trial: Trials
    failed: list[Case] = field(default_factory=list)
    offered: Sequence[Case] = ()
    probed: Sequence[Case] = ()
    hidden: list[Case] = field(default_factory=list)

    def has_needed(self, case: Case) -> bool:
        """Return whether a case has all values that a failure needs."""
        return all(value.is_of(case) for value in self.needed)

    @property
    def refuting(self) -> list[Case]:
        """Return the passed cases with the needed values, which do not hide the failure."""
        has = filter(self.has_needed, self.passed)
        return [case for case in has if case not in self.hidden]

    @property
    def is_enough(self) -> bool:
        """Return whether the needed values alone tell failed cases from passed ones."""
        return bool(self.needed) and all(map(self.has_new_one, self.refuting))

    def conditions_of(self, case: Case) -> set[Relation]:
        """Return what holds for a case but for its values."""
        return conditions_of(case, self.launches)

    def find_shared(self) -> set[Relation]:
        """Return what all failed cases have, and no passed one that refutes."""
        failed = set.intersection(*map(self.conditions_of, self.failed))
        return failed.difference(*map(self.conditions_of, self.refuting))

    @property
    def shapes(self) -> set[tuple[int, ...]]:
        """Return the shapes of the failed cases."""
        return {case.shape for case in self.failed}

    def has_new_one(self, case: Case) -> bool:
        """Return whether a dimension has length 1 that has not in any failed case.

        Where there is one row or one scale, much is right by chance.
        """
        alike = [shape for shape in self.shapes if len(shape) == len(case.shape)]
        if not alike:
            return 1 in case.shape and not any(1 in shape for shape in self.shapes)
        lengths = zip(case.shape, *alike, strict=True)
        return any(own == 1 and 1 not in others for own, *others in lengths)

    def is_new(self, case: Case) -> bool:
        """Return whether a case has another shape than the failed ones, with no new length of 1."""
        return case.shape not in self.shapes and not self.has_new_one(case)

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

    def show_hidden(self) -> None:
        """Try passed cases with the values of the plainest failed one: zeros hide much.

        Those come first that have most in common with it. Cases that differ in values alone are
        tried once.
        """
        first = self.conditions_of(self.failed[0])
        like = defaultdict(list)
        for case in sorted(self.refuting, key=lambda case: -len(first & self.conditions_of(case))):
            if shown := self._show(case):
                like[case.shape, case.dtype, case.layouts, case.scalars].append((case, shown))
        for (_, shown), *_ in (alike := [*like.values()][:MAX_TRIALS]):
            if self.trial(shown) is False:
                self.failed.append(shown)
        self.hidden = [case for pairs in alike for case, _ in pairs if pairs[0][1] in self.failed]

    def _show(self, case: Case) -> Case | None:
        """Return a case with the values of the plainest failed one, if it can have them."""
        plainest = self.plainest
        shown = case.evolve(regime=plainest.regime, special=plainest.special)
        is_usable = case.special not in SHARED_VALUES and plainest.special in (PLAIN, case.special)
        is_few = math.prod(case.shape) <= _FEW_ELEMENTS
        return shown if shown != case and is_usable and is_few else None

    def try_best(self, rank: _Rank) -> bool:
        """Try the case of the least rank; return whether there is one."""
        usable = (case for case in self.offered if self.has_needed(case))
        ranks = {case: rank(case, self.conditions_of(case)) for case in usable}
        ranked = {case: own for case, own in ranks.items() if own is not None}
        if not ranked or self.trial.is_late:
            return False
        best = min(ranked, key=lambda case: ranked[case])
        self.offered = [case for case in self.offered if case != best]
        outcome = self.trial(best)
        if outcome is not None:
            (self.passed if outcome else self.failed).append(best)
        return True

    def explain(self) -> Explanation | None:
        """Return the needed values, or with them the condition that is left after trials."""
        self.show_hidden()
        first = self.conditions_of(self.failed[0])
        for _ in range(N_CONFIRM * self.is_enough):
            self.try_best(_by_all(self, set(), first))
        if self.is_enough:
            alone = self._tell(None)
            return alone if len(alone.wrong) >= MIN_FAILED and alone.is_clear else None
        for rank_by, most in ((_by_part, MAX_TRIALS), (_by_all, N_CONFIRM), (_by_none, N_CONFIRM)):
            for _ in range(most):
                shared = self.find_shared()
                if not shared or not self.try_best(rank_by(self, shared, first)):
                    break
        is_open = self.try_best(_by_part(self, self.find_shared(), first))
        shared = {each for each in self.find_shared() if self.is_sure(each) and not is_open}
        relations = sorted(shared or self._find_steps(is_open), key=simplicity)
        conditions = [*([None] if self.needed else []), *relations]
        clear = [each for each in map(self._tell, conditions) if each.is_clear]
        return min(clear, key=lambda each: each.n_right > 0, default=None)

    def _find_steps(self, is_open: bool) -> set[Relation]:
        """Return the paths that all failed cases have, if these are of several shapes."""
        if is_open or len(self.shapes) < MIN_SHAPES:
            return set()
        shared = set.intersection(*map(self.conditions_of, self.failed))
        return {each for each in shared if Kind.VALUE < each.kind < Kind.UNCOVERED}

    def _tell(self, relation: Relation | None) -> Explanation:
        """Return the needed values with a relation."""
        failed, probed = tuple(self.failed), tuple(self.probed)
        passed, hidden = tuple(self.passed), frozenset(self.hidden)
        return Explanation(self.launches, self.needed, relation, failed, probed, passed, hidden)


def _by_part(search: Search, shared: set[Relation], _: set[Relation]) -> _Rank:
    """Rank cases of other shapes by how near they come to half of what is shared."""

    def rank(case: Case, own: set[Relation]) -> int | None:
        n = len(own & shared)
        is_part = 0 < n < len(shared) and search.is_new(case)
        return abs(len(shared) - 2 * n) if is_part else None

    return rank


def _by_all(search: Search, shared: set[Relation], first: set[Relation]) -> _Rank:
    """Rank cases with all that is shared by what else they share with a failed one."""
    is_few = len(search.shapes) < MIN_SHAPES

    def rank(case: Case, own: set[Relation]) -> int | None:
        is_new = search.is_new(case)
        is_usable = shared <= own and (is_new or is_few)
        return len(own & first) + len(first) * (not is_new) if is_usable else None

    return rank


def _by_none(search: Search, shared: set[Relation], first: set[Relation]) -> _Rank:
    """Rank cases without what is shared by what else they do not share with a failed one."""

    def rank(case: Case, own: set[Relation]) -> int | None:
        is_usable = len(own) > 1 and search.is_new(case) and shared.isdisjoint(own)
        return -len(own & first) if is_usable else None

    return rank


def offer(like: Case, results: Sequence[CaseResult], launches: LaunchPlan) -> Iterator[Case]:
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


def simplicity(condition: Relation) -> tuple[int, int, str]:
    """Return how hard a condition is to read, to compare."""
    return condition.kind, len(condition.text), condition.text


__all__ = ["MIN_FAILED", "Explanation", "Search", "Trials", "conditions_of", "offer", "simplicity"]
