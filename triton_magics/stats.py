"""Summaries and verdicts of time samples; pure, without torch and numpy."""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

Verdict = Literal["faster", "slower", "same", "undecided"]


class Interval(NamedTuple):
    """A central value with its confidence limits."""

    middle: float
    low: float
    high: float


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return a percentile, linear between neighbouring order statistics.

    Args:
        samples: shape (n,), n >= 1, any unit.
        percent: 0 to 100.

    Raises:
        ValueError: no samples, or a percentage outside 0 to 100.
    Source: type 7 of Hyndman and Fan, as numpy's default.
    """
    if not samples or not 0 <= percent <= 100:
        raise ValueError(f"percentile {percent} of {len(samples)} samples")
    ordered = sorted(samples)
    position = (len(ordered) - 1) * percent / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def paired_speedup(
    candidate_us: Sequence[float], baseline_us: Sequence[float], *, confidence: float = 0.95
) -> Interval:
    """Return the speedup of the candidate, with its confidence interval over paired rounds.

    Compared with the median of the ratios, this needs a third fewer rounds for the same width. A
    bootstrap of ten rounds covers less than its stated confidence; this interval does not.

    Args:
        candidate_us: one time per round, microseconds; shape (n,), n >= 1.
        baseline_us: the same rounds' times of the baseline; shape (n,).
        confidence: of the interval; with too few rounds for it (seven for 99 %), the whole range.

    Returns:
        exp of the median of all pairwise means of log(baseline / candidate); > 1 means faster.

    Raises:
        ValueError: lengths differ, or no rounds.
    Source: Hodges and Lehmann (1963); the interval by Wilcoxon's signed ranks, in Hollander and
    Wolfe, Nonparametric Statistical Methods, section 3.3.
    """
    if len(candidate_us) != len(baseline_us) or not candidate_us:
        raise ValueError(f"{len(candidate_us)} and {len(baseline_us)} rounds can't be paired")
    logs = [math.log(b / c) for c, b in zip(candidate_us, baseline_us, strict=True)]
    means = sorted((x + y) / 2 for i, x in enumerate(logs) for y in logs[i:])
    cut = _signed_rank_cut(len(logs), round((1 - confidence) / 2, 12))
    low, high = means[cut], means[len(means) - 1 - cut]
    return Interval(math.exp(statistics.median(means)), math.exp(low), math.exp(high))


@functools.lru_cache(maxsize=256)
def _signed_rank_cut(n: int, tail: float) -> int:
    """Return the number of the n (n + 1) / 2 pairwise means on either side of the interval.

    Exact up to 25 rounds, by the normal distribution from there on.
    """
    whole = n * (n + 1) // 2
    if n > 25:
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(math.floor(whole / 2 + statistics.NormalDist().inv_cdf(tail) * spread), 0)
    ways = [1] + [0] * whole
    for rank in range(1, n + 1):
        for total in range(whole, rank - 1, -1):
            ways[total] += ways[total - rank]
    below = itertools.accumulate(ways)
    return max(sum(1 for count in below if count <= tail * 2**n) - 1, 0)


def middle_mean(samples: Sequence[float]) -> float:
    """Return the mean of the middle half: as precise as a mean, as robust to outliers as a median.

    Args:
        samples: shape (n,), n >= 1; with fewer than four, the plain mean.

    Source: the interquartile mean.
    """
    ordered = sorted(samples)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def verdict(interval: Interval, threshold: float) -> Verdict:
    """Return faster, slower, same or undecided, for a speedup with its interval.

    Args:
        interval: of the speedup, > 1 is faster.
        threshold: relative difference that counts as equal, e.g. 0.01.

    Returns:
        `faster` if the whole interval is above 1 + threshold, `slower` if it is below
        1 / (1 + threshold), `same` if it lies between the two, else `undecided`.
    """
    upper, lower = 1 + threshold, 1 / (1 + threshold)
    if interval.low > upper:
        return "faster"
    if interval.high < lower:
        return "slower"
    if lower <= interval.low and interval.high <= upper:
        return "same"
    return "undecided"


def clock_tick_us(deltas_us: Sequence[float]) -> float | None:
    """Return the resolution of a clock: the smallest positive difference of its durations.

    Args:
        deltas_us: durations, microseconds, shape (n,).

    Returns:
        the resolution, or None if all durations are equal.
    """
    ordered = sorted(deltas_us)
    steps = [b - a for a, b in itertools.pairwise(ordered) if b - a > 1e-4]
    return min(steps, default=None)
