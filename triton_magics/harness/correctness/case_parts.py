"""The parts of a plan that workers share: which cases each of them runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from triton_magics.harness.correctness.launch_cases import MAX_COMPILED
from triton_magics.harness.correctness.repeat_calls import MAX_REPEAT_ELEMENTS
from triton_magics.model import Case

SERIES_WORK = 4
LATER_WORK = MAX_COMPILED * (SERIES_WORK + 1)  # most cases that launches call for come in pairs


def select_part(cases: Sequence[Case], dtypes: Sequence[str], part: int, parts: int) -> list[Case]:
    """Return the cases of a part, in their order: as much work in each, and few dtypes.

    What is checked once for each dtype is then seldom checked in two parts. The last part has less
    by the cases that the launches of the version call for.
    """
    by_dtype = sorted(range(len(cases)), key=lambda i: dtypes.index(cases[i].dtype))
    amounts = [_work(cases[i]) for i in by_dtype]
    later = min(LATER_WORK, sum(amounts) // parts) if parts > 1 else 0
    share = max(sum(amounts) + later, 1) / parts
    before = itertools.accumulate(amounts, initial=0)
    own = [i for i, done in zip(by_dtype, before, strict=False) if done // share == part]
    return [cases[i] for i in sorted(own)]


def _work(case: Case) -> int:
    """Return the work of a case, 1 for most: those with usual values are called again and again.

    On an H200 these take four times as long.
    """
    is_small = math.prod(case.shape) <= MAX_REPEAT_ELEMENTS
    return SERIES_WORK if case.has_plain_values and is_small else 1


__all__ = ["LATER_WORK", "select_part"]
