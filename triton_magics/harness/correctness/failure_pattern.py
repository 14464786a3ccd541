"""Find what the wrong cases of a validation have in common, and no or few right ones have.

Many cases share much by chance, so further inputs are tried. First, which values the plainest wrong
case needs (`needed_values`), or how its tensors have to lie to each other (`layout_pairs`). If
there are right cases with these, too, what their launches look like is compared (`pattern_search`).
Wrong cases that this does not explain are explained in the same way, by another condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from triton_magics.execution.job_refs import VersionRef
from triton_magics.harness.correctness.launch_cases import LaunchPlan
from triton_magics.harness.correctness.launch_relations import Kind, Relation
from triton_magics.harness.correctness.layout_pairs import widen_layouts
from triton_magics.harness.correctness.needed_values import Passes, find_needed, values_of
from triton_magics.harness.correctness.pattern_search import (
    MIN_FAILED,
    Explanation,
    Search,
    Trials,
    conditions_of,
    offer,
    simplicity,
)
from triton_magics.harness.correctness.special_values import SHARED_VALUES
from triton_magics.model import (
    EVERY_INPUT,
    Case,
    CaseResult,
    CaseStatus,
    FailurePattern,
    source_lines,
)

MIN_PASSED = 10  # with fewer cases too much is common by chance
MAX_EXPLANATIONS = 3  # of several conditions
MAX_LEFT = 0.1  # of the failed cases may have another condition
N_WITHOUT = 3  # of failed cases that have to be right without a condition


def find_pattern(
    results: Sequence[CaseResult],
    launches: LaunchPlan,
    ref: VersionRef,
    passes: Passes,
    limit_s: float,
) -> FailurePattern | None:
    """Return the simplest condition that all failed cases have and hardly a passed one, if any.

    Args:
        results: of all cases.
        launches: what the launches of the version look like.
        ref: the version, to name lines.
        passes: runs a further case.
        limit_s: wall time of further cases; after it there is no pattern.
    """
    failed = [r.case for r in results if r.status.failed]
    passed = [r.case for r in results if r.status is CaseStatus.PASSED]
    if not failed or len(passed) < MIN_PASSED:
        return None
    trial = Trials(passes, limit_s)
    if trial(min(failed, key=_n_values)) is not False:  # further calls tell nothing
        return _compare_alone(failed, passed, launches, ref)
    explanations = _Explainer(results, passed, launches, trial).explain_all(failed)
    return _tell(explanations, failed, ref) if explanations and not trial.is_late else None


@dataclass(frozen=True)
class _Explainer:
    """Explains failed cases by conditions.

    Attributes:
        results: of all cases.
        passed: the passed cases.
        launches: what the launches of the version look like.
        trial: runs a further case.
    """

    results: Sequence[CaseResult]
    passed: Sequence[Case]
    launches: LaunchPlan
    trial: Trials

    def explain_all(self, failed: Sequence[Case]) -> list[Explanation]:
        """Return conditions of which nearly all failed cases have one; none if there are many.

        Cases that are wrong without these have another one.
        """
        explanations: list[Explanation] = []
        left = failed
        while left:
            explanation = self._explain(left, failed)
            if explanation is None or len(explanations) == MAX_EXPLANATIONS:
                return []
            explanations.append(explanation)
            left = [case for case in left if not explanation.is_of(case)]
            if len(left) <= MAX_LEFT * len(failed):
                left = self._wrong_without(explanations, failed)
        return _drop_covered(explanations)

    def _explain(self, left: Sequence[Case], failed: Sequence[Case]) -> Explanation | None:
        """Return the condition of the plainest case that is left, and of those like it."""
        probed: list[Case] = []

        def probe(case: Case) -> bool | None:
            outcome = self.trial(case)
            if outcome is False:
                probed.append(case)
            return outcome

        like = [result.case for result in self.results]
        values, plainest = find_needed(min(left, key=_n_values), failed, like, probe)
        needed = widen_layouts(values, plainest, left, probe)
        search = Search(self.launches, needed, plainest, [*self.passed], self.trial)
        search.failed = [case for case in left if search.has_needed(case)]
        search.probed = [case for case in probed if search.has_needed(case)]
        offered = offer(plainest, self.results, self.launches)
        search.offered = [case for case in offered if case not in failed]
        return search.explain()

    def _wrong_without(
        self, explanations: Sequence[Explanation], failed: Sequence[Case]
    ) -> list[Case]:
        """Return cases that are wrong without the conditions, of those furthest from plain."""
        if any(explanation.relation for explanation in explanations):
            return []  # it can't be left out
        has = [case for case in failed if any(each.is_of(case) for each in explanations)]
        furthest = sorted(has, key=_n_values, reverse=True)[:N_WITHOUT]
        without = [
            reduce(lambda case, each: each.leave_out(case), explanations, own) for own in furthest
        ]
        return [case for case in without if self.trial(case) is False]


def _drop_covered(explanations: Sequence[Explanation]) -> list[Explanation]:
    """Return the explanations without those whose wrong cases another one explains, too."""
    rest = [*explanations]
    for each in explanations:
        if any(all(map(other.is_of, each.wrong)) for other in rest if other is not each):
            rest.remove(each)
    return rest


def _n_values(case: Case) -> int:
    """Return how far a case is from plain; a value of every input counts as several."""
    of_all = sum(value.name == EVERY_INPUT for value in values_of(case))
    return len(values_of(case)) + of_all + (case.special in SHARED_VALUES)


def _tell(
    explanations: Sequence[Explanation], failed: Sequence[Case], ref: VersionRef
) -> FailurePattern | None:
    """Return the conditions with their cases; None if no right case is without them."""
    wrong = dict.fromkeys((*failed, *(case for each in explanations for case in each.wrong)))
    right = dict.fromkeys(case for each in explanations for case in each.passed)

    def count(cases: Iterable[Case]) -> int:
        return sum(any(each.is_of(case) for each in explanations) for case in cases)

    n_passed_with = count(right)
    if n_passed_with == len(right):
        return None
    return FailurePattern(
        condition=_join([_describe(explanation, ref) for explanation in explanations]),
        n_failed=count(wrong),
        n_passed=len(right),
        n_passed_with=n_passed_with,
        n_failed_without=len(wrong) - count(wrong),
    )


def _compare_alone(
    failed: Sequence[Case], passed: Sequence[Case], launches: LaunchPlan, ref: VersionRef
) -> FailurePattern | None:
    """Return a value or a path that several failed cases have and no passed one."""
    if len(failed) < MIN_FAILED:
        return None
    values = set.intersection(*({*values_of(case)} for case in failed))
    values = values.difference(*map(values_of, passed))
    shared = set.intersection(*(conditions_of(case, launches) for case in failed))
    shared = shared.difference(*(conditions_of(case, launches) for case in passed))
    steps = sorted((each for each in shared if each.kind < Kind.UNCOVERED), key=simplicity)
    texts = sorted((value.text for value in values), key=lambda text: (len(text), text))
    texts += [_describe_relation(each, ref) for each in steps]
    if not texts:
        return None
    return FailurePattern(condition=texts[0], n_failed=len(failed), n_passed=len(passed))


def _join(texts: Sequence[str]) -> str:
    """Return conditions of which one is enough; tensors with the same layouts are named at once."""
    names, layouts = zip(*(text.partition(" ")[::2] for text in texts), strict=True)
    is_one = len({*layouts}) == 1 and all(layouts)
    return f"{' or '.join(names)} {layouts[0]}" if is_one else ", or ".join(texts)


def _describe(explanation: Explanation, ref: VersionRef) -> str:
    """Return a condition for readers."""
    texts = [value.text for value in explanation.needed]
    if explanation.relation:
        texts.append(_describe_relation(explanation.relation, ref))
    return " and ".join(texts)


def _describe_relation(condition: Relation, ref: VersionRef) -> str:
    """Return a relation for readers: a step with the line that it comes to."""
    if condition.line is None:
        return condition.text
    code = source_lines(ref.source)[condition.line - 1].strip()
    line = f"cell line {ref.cell_line(condition.line) or condition.line}"
    way = f"one way of {line}" if condition.kind is Kind.BRANCH else f"{line} runs"
    return f"{way}: `{code}`"


__all__ = ["find_pattern"]
