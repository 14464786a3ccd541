"""Cases in which the launches of a version look like in no case of its plan.

A plan is made from the op, the seed and the numbers of the source. Whether a path of the wrapper is
taken, and how many blocks a dimension has, depends on the version. So its wrapper is called for
many inputs without memory and without launches. For each relation (`launch_relations`) that none of
the planned cases has, the plan gets a case that has it. It never loses one.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from triton_magics import operators
from triton_magics.harness.correctness.launch_relations import (
    PATHS,
    WORTH,
    Kind,
    LaunchSurvey,
    Relation,
)
from triton_magics.harness.correctness.launch_survey import MAX_VARIED
from triton_magics.harness.correctness.offered_cases import (
    MAX_MS,
    OfferedCases,
    count_results,
    declared_lengths,
    interpreter_ms,
    neighbors,
)
from triton_magics.harness.correctness.shape_variants import is_defined
from triton_magics.harness.correctness.special_values import LATE_PEAKS, SHARED_VALUES
from triton_magics.languages.source_numbers import (
    read_integers,
    read_integers_at,
    read_thresholds,
)
from triton_magics.model import NORMAL, PLAIN, Case

MAX_CASES, MAX_COMPILED, MAX_THOROUGH = 16, 8, 24  # in the interpreter; on a GPU; with --thorough
MAX_PATHS = 16  # cases, on a GPU, of which those past MAX_COMPILED are on paths of their own
SURVEY_S, SURVEY_GPU_S = 4.0, 8.0  # of CPU time; most take 0.1 to 0.5, a long wrapper 4
ALL_MS = 5200  # of them all in the interpreter
WIDE = "x10"  # the regime of late peaks
_CHEAP_MS = 60  # fewer cost hardly anything
_COSTLY_MS, _MS_PER_WORTH, _TRIAL_MS = 300, 600, 300
RARE_PATHS, MORE_OF_A_PATH = 4, 2  # paths that few planned cases take; more cases of each
_FEW_TAKE = 4
_RARE_MS = 600  # of such a case
# On a GPU the judge may compute a case over 30 times with rounding errors. It took 15 s for the
# 1.6e9 scores of an attention (H200).
_GPU_MS_PER_RESULT = 1e-5
_ENOUGH_GAIN = 0.5  # of the most, for a case that the judge computes quickly

_Form = tuple[object, ...]


@dataclass(frozen=True)
class LaunchPlan:
    """The cases that the launches of a version call for, and what launches look like.

    Attributes:
        cases: to add to a plan.
        cheap: others that the device computes quickly, the quickest first.
        relations: of the launches of each form, see `relations_of`.
    """

    cases: tuple[Case, ...] = ()
    cheap: tuple[Case, ...] = ()
    relations: Mapping[_Form, frozenset[Relation]] = field(default_factory=dict)

    def relations_of(self, case: Case) -> frozenset[Relation]:
        """Return the relations of a case; none where its wrapper was not called, or raised."""
        return self.relations.get(_form(case), frozenset())


class LaunchPlanner:
    """Chooses cases with relations that the planned ones do not have, those with most first.

    Attributes:
        cases: to survey.
        limit_s: of the survey, seconds of CPU time.
    """

    def __init__(
        self,
        op: operators.Op,
        planned: Sequence[Case],
        *,
        dtypes: Sequence[str],
        source: str,
        plan: str,
        seed: int,
        is_interpreted: bool,
    ) -> None:
        """Draw the cases on offer.

        Args:
            op, planned, plan, seed: of the validation.
            dtypes: that the device can run.
            source: the version's module.
            is_interpreted: an interpreter runs the kernels, on the CPU.
        """
        self._op, self._planned, self._is_interpreted = op, planned, is_interpreted
        self._source = source
        most = MAX_CASES if is_interpreted else MAX_COMPILED
        self._most = MAX_THOROUGH if plan == "thorough" else most
        forms = {_form(case): case for case in planned if case.dtype in dtypes}
        specials = [s for s in SHARED_VALUES if any(case.special == s for case in planned)]
        offers = OfferedCases(
            op, dtypes, read_integers(source), specials, seed,
            is_interpreted=is_interpreted, thresholds=read_thresholds(source),
        )  # fmt: skip
        offered = [case for case in offers.draw() if _form(case) not in forms] if op.shapes else []
        self._forms, self._offered = [*forms.values()] if op.shapes else [], offered
        self.cases = (*self._forms, *offered)
        self.limit_s = SURVEY_S if is_interpreted else SURVEY_GPU_S

    def plan(self, launch_survey: LaunchSurvey) -> LaunchPlan:
        """Return the cases, and what launches look like, from a survey of `cases`."""
        op, every = self._op, launch_survey.relations
        offered = [*self._offered, *self._neighbors(launch_survey)]
        choice = _Choice(
            op, launch_survey, self._forms, offered, is_interpreted=self._is_interpreted
        )
        chosen = itertools.islice(choice.by_gain(self._most), max(self._most, MAX_PATHS))
        cases = [
            varied
            for case, cost in chosen
            for varied in _vary_values(case, self._planned, only_one=choice.is_costly(cost))
        ]
        cases += choice.on_rare_paths()
        relations = {
            _form(case): frozenset(every[i] for i in own if 0 <= i < len(every))
            for case, own in zip((*self._forms, *offered), launch_survey.of_cases, strict=False)
            if own is not None
        }
        usable = (case for case in offered if _form(case) in relations)
        cheap = sorted(usable, key=lambda case: interpreter_ms(op, case.shape))
        if self._is_interpreted:
            cheap = [case for case in cheap if interpreter_ms(op, case.shape) <= _TRIAL_MS]
        return LaunchPlan(tuple(cases), tuple(cheap), relations)

    def _neighbors(self, launch_survey: LaunchSurvey) -> Iterator[Case]:
        """Yield the neighbors that a survey has called, in its order."""
        cases, declared = [*self.cases], declared_lengths(self._op) if launch_survey.varied else []
        for place, line in launch_survey.varied[:MAX_VARIED]:
            if 0 <= place < len(cases):
                numbers = read_integers_at(self._source, line)
                cases += (near := neighbors(self._op, cases[place], declared, numbers))
                yield from near


def _vary_values(case: Case, planned: Sequence[Case], *, only_one: bool) -> list[Case]:
    """Return the case with usual values, and with the largest at the end if the op's plan has such.

    A few elements that a path leaves out at the end hardly count in a sum of many.
    """
    like = [c for c in planned if c.special == LATE_PEAKS and c.dtype == case.dtype]
    if not like or case.special != PLAIN:
        return [case]
    regime = next((c.regime for c in like if c.regime == WIDE), NORMAL)
    late = case.evolve(special=LATE_PEAKS, regime=regime)
    return [late] if only_one else [case, late]


class _Choice:
    """The cases that a survey called, what they have, and what is covered so far.

    Costs are in milliseconds of an interpreter, or of the judge on a GPU.
    """

    def __init__(
        self,
        op: operators.Op,
        launch_survey: LaunchSurvey,
        forms: Sequence[Case],
        offered: Sequence[Case],
        *,
        is_interpreted: bool,
    ) -> None:
        """Cover what the planned forms have."""
        self._op, self._relations = op, launch_survey.relations
        n = len(self._relations)
        have = [{i for i in own or () if 0 <= i < n} for own in launch_survey.of_cases]
        self._is_interpreted = is_interpreted
        costs = [
            max(interpreter_ms(op, case.shape), programs // 2)
            if is_interpreted
            else int(count_results(op, case.shape) * _GPU_MS_PER_RESULT)
            for case, programs in zip((*forms, *offered), launch_survey.programs, strict=False)
        ]
        each = [*zip((*forms, *offered), have, costs, strict=False)]
        # An interpreter may not come to the end of a planned case that costs more.
        most = MAX_MS if is_interpreted else math.inf
        self._planned = [own for _, own, cost in each[: len(forms)] if cost <= most]
        self._covered = set[int]().union(*self._planned)
        self._open = [one for one in each[len(forms) :] if one[2] <= most]
        self._ms_left: float = ALL_MS if is_interpreted else math.inf

    def by_gain(self, most: int) -> Iterator[tuple[Case, int]]:
        """Yield the offered case with most that is new, again and again, and named by it; its cost.

        Cases past `most` are on a path or a step of the wrapper that no other one is on.
        """
        n_chosen = 0
        while self._open:
            gains = [self._worth_of(own - self._covered) for _, own, _ in self._open]
            best = self._best(gains)
            case, own, cost = self._open[best]
            if not gains[best]:
                return
            is_worth_it = cost <= min(self._ms_left, _MS_PER_WORTH * gains[best])
            is_too_slow = self._is_interpreted and not is_worth_it
            if is_too_slow or not is_defined(self._op, case.shape):
                self._open.pop(best)
                continue
            name = max(own - self._covered, key=self._rank)
            if n_chosen >= most and self._relations[name].kind not in PATHS:
                return
            n_chosen += 1
            yield self._take(best, name)

    def is_costly(self, cost: int) -> bool:
        """Return whether a case costs so much that one value of it is enough."""
        return cost > (_COSTLY_MS if self._is_interpreted else MAX_MS)

    def _best(self, gains: Sequence[int]) -> int:
        """Return the place of the open case to take next.

        Of equal ones it is the largest: it is further beyond a limit. An interpreter has little
        time for all; a GPU takes one with half the gain if the judge of the best would be slow.
        """
        costs = [cost for _, _, cost in self._open]
        sizes = [math.prod(case.shape) for case, _, _ in self._open]
        places = range(len(gains))
        if self._is_interpreted:
            return max(places, key=lambda k: (gains[k] / max(costs[k], _CHEAP_MS), sizes[k]))
        enough = max(gains) * _ENOUGH_GAIN
        good = [k for k in places if gains[k] >= enough]
        quick = [k for k in good if not self.is_costly(costs[k])]
        if quick:
            return max(quick, key=lambda k: (gains[k], sizes[k]))
        return min(good, key=lambda k: costs[k])

    def on_rare_paths(self) -> Iterator[Case]:
        """Yield a few more cases of each path that few planned ones take.

        What is wrong on a path may need more than that it is taken: the least usual lengths come
        first, those that end within blocks.
        """
        n_on = Counter(i for own in self._planned for i in own)
        steps = (i for i, relation in enumerate(self._relations) if relation.kind in PATHS)
        rare = sorted((i for i in steps if n_on[i] <= _FEW_TAKE), key=lambda i: (n_on[i], i))
        paths = {frozenset(k for k, one in enumerate(self._open) if i in one[1]): i for i in rare}
        n_paths, chosen = 0, set[int]()
        for cases, name in paths.items():
            fitting = [k for k in cases - chosen if self._fits(*self._open[k])]
            fitting.sort(key=lambda k: (*self._usual(*self._open[k]), k))
            for k in fitting[:MORE_OF_A_PATH]:
                case, _, cost = self._open[k]
                self._ms_left -= cost
                yield case.evolve(extent=self._relations[name].text)
            chosen.update(fitting[:MORE_OF_A_PATH])
            n_paths += bool(fitting)
            if n_paths >= RARE_PATHS:
                return

    def _fits(self, case: Case, _: Set[int], cost: int) -> bool:
        is_cheap = cost <= min(self._ms_left, _RARE_MS) or not self._is_interpreted
        return is_cheap and min(case.shape) > 0 and is_defined(self._op, case.shape)

    def _take(self, place: int, name: int) -> tuple[Case, int]:
        case, own, cost = self._open.pop(place)
        self._ms_left -= cost
        self._covered |= own
        self._planned.append(own)
        return case.evolve(extent=self._relations[name].text), cost

    def _worth_of(self, relations: Set[int]) -> int:
        return sum(WORTH[self._relations[i].kind] for i in relations)

    def _rank(self, i: int) -> tuple[int, int, int]:
        kind = self._relations[i].kind
        return WORTH[kind], -kind, -i

    def _usual(self, case: Case, own: Set[int], cost: int) -> tuple[bool, int, int]:
        kinds = [self._relations[i].kind for i in own]
        ragged = sum(kind in {Kind.RAGGED, Kind.RAGGED_ON_PATH, Kind.UNCOVERED} for kind in kinds)
        is_slow = not self._is_interpreted and self.is_costly(cost)
        return is_slow, sum(n <= 1 for n in case.shape), -ragged


def _form(case: Case) -> _Form:
    """Return what the launches of a case depend on."""
    special = case.special if case.special in SHARED_VALUES else PLAIN
    return case.shape, case.dtype, case.layouts, case.scalars, special


__all__ = ["LaunchPlan", "LaunchPlanner"]
