"""Samples in, summary and verdict out. Pure; no torch, no numpy."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

Verdict = Literal["faster", "slower", "same", "undecided"]


class Interval(NamedTuple):
    """A middle with its confidence limits."""

    middle: float
    low: float
    high: float


def percentile(samples: Sequence[float], percent: float) -> float:
    """The given percentile, linear between neighbouring order statistics.

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
    candidate_us: Sequence[float],
    baseline_us: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """How many times as fast the candidate is, with a bootstrap interval over paired rounds.

    Args:
        candidate_us: one time per round, microseconds; shape (n,), n >= 1.
        baseline_us: the same rounds' times of the baseline; shape (n,).
        confidence: of the percentile interval.
        resamples: bootstrap resamples of the rounds.
        seed: of the resampling, so that the same samples give the same interval.

    Returns:
        exp(median(log(baseline / candidate))) and its interval; > 1 means faster.

    Raises:
        ValueError: lengths differ, or no rounds.
    Source: percentile bootstrap of the median of paired log-ratios (Efron and Tibshirani, 1993).
    """
    if len(candidate_us) != len(baseline_us) or not candidate_us:
        raise ValueError(f"{len(candidate_us)} and {len(baseline_us)} rounds can't be paired")
    ratios = [math.log(b / c) for c, b in zip(candidate_us, baseline_us, strict=True)]
    rng = random.Random(seed)  # noqa: S311 (resampling, not secrets)
    n = len(ratios)
    medians = [statistics.median(rng.choices(ratios, k=n)) for _ in range(resamples)]
    tail = 100 * (1 - confidence) / 2
    low, high = percentile(medians, tail), percentile(medians, 100 - tail)
    return Interval(math.exp(statistics.median(ratios)), math.exp(low), math.exp(high))


def verdict(interval: Interval, threshold: float) -> Verdict:
    """Faster, slower, same or undecided, for a speedup with its interval.

    Args:
        interval: of the speedup, > 1 is faster.
        threshold: the relative difference that counts as none, e.g. 0.01.

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
    """The step of a clock, from many durations it gave: their smallest positive difference.

    Args:
        deltas_us: durations, microseconds, shape (n,).

    Returns:
        the step, or None if all durations are equal.
    """
    ordered = sorted(deltas_us)
    steps = [b - a for a, b in itertools.pairwise(ordered) if b - a > 1e-4]
    return min(steps, default=None)
