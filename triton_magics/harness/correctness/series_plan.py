"""Plan of the series of calls: on which cases, how many, and on which contents in turn."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator

from triton_magics.harness.correctness.call_record import FEW_CALLS, CallRecord, Turn
from triton_magics.harness.correctness.subject import Subject
from triton_magics.model import Case, PlanName

MANY_CALLS = 400
SOME_CALLS = 64
MANY_PROGRAMS = 300  # of a long series, in the interpreter
SERIES_S = 2.0  # of CPU time in the interpreter, where a program may loop for long
MAX_SERIES_BYTES = 2**26  # of the outputs that are kept
MANY_CONTENTS = 12
MIN_SERIES_ELEMENTS = 8  # a softmax of one column is 1, whatever its inputs are
RENEWED_SHARE = 0.25


def choose_long_series(cases: Iterable[Case], plan: PlanName) -> dict[Case, int]:
    """Return the cases on which a version is called many times, with the number of calls.

    They are plain and contiguous, and have the fewest rows in their dtype: one for many calls, and
    one with several rows, because swapped elements of one row have the same sum. A quick plan has
    one of the latter.
    """
    chosen: dict[Case, int] = {}
    by_dtype: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        plain = case.has_plain_values and case.is_contiguous and not case.extent
        if plain and math.prod(case.shape) >= MIN_SERIES_ELEMENTS:
            by_dtype[case.dtype].append(case)
    for own in by_dtype.values():
        several = [case for case in own if _cost(case)[0] > 1 and case.shape[-1] > 1]
        chosen |= {min(group, key=_cost): SOME_CALLS for group in (several, own) if group}
    if plan == "quick":
        return dict([*chosen.items()][:1])
    if chosen:
        first = next(iter(by_dtype.values()))
        chosen[min(first, key=_cost)] = MANY_CALLS
    return chosen


def _cost(case: Case) -> tuple[int, int]:
    """Return the number of rows and of elements of the case's shape."""
    return math.prod(case.shape[:-1]), math.prod(case.shape)


def count_calls(subject: Subject, call: CallRecord, n: int) -> int:
    """Return how many calls a series of n has: fewer of a kernel with many programs."""
    if subject.is_interpreted:
        n = min(n, MANY_PROGRAMS // max(call.launches.programs, 1))
    n_bytes = 2 * sum(t.nbytes for t in call.outputs)
    return max(min(n, MAX_SERIES_BYTES // max(n_bytes, 1)), FEW_CALLS)


def plan_turns(n: int, n_contents: int, n_constant: int, seed: int) -> tuple[Turn, ...]:
    """Return the calls: each contents in the case's tensors and in new ones, then at random.

    Constant contents are in new tensors, which then get the case's contents: what a version has
    decided about a tensor at its first sight is wrong then.

    Args:
        n: the number of calls.
        n_contents: the contents; the case's own are the first.
        n_constant: how many of them, the last ones, are constant.
        seed: of the case.
    """
    draw = random.Random(f"{seed} turns")  # noqa: S311 (replayed from the seed)
    return tuple(_iter_turns(n, n_contents, n_constant, draw))


def _iter_turns(n: int, n_contents: int, n_constant: int, draw: random.Random) -> Iterator[Turn]:
    first = [Turn(0), Turn(1), Turn(0, True), Turn(1, True)] if n_contents > 1 else [Turn(0)] * 2
    constant = range(n_contents - n_constant, n_contents)
    sight = [turn for i in constant for turn in (Turn(i, True), Turn(0, in_last=True))]
    turns = [*first, *sight, *map(Turn, range(2, n_contents - n_constant))]
    yield from turns[:n]
    for _ in range(n - len(turns)):
        yield Turn(draw.randrange(n_contents), draw.random() < RENEWED_SHARE)


__all__ = [
    "FEW_CALLS",
    "MANY_CALLS",
    "MANY_CONTENTS",
    "SERIES_S",
    "choose_long_series",
    "count_calls",
    "plan_turns",
]
