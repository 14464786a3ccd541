"""Samples in, summary and verdict out, with numbers worked by hand."""

from __future__ import annotations

import math
import random

import pytest

from triton_magics import roofline, stats
from triton_magics.stats import Interval


@pytest.mark.parametrize(
    ("percent", "expected"), [(0, 1), (25, 1.75), (50, 2.5), (95, 3.85), (100, 4)]
)
def test_percentile_is_linear_between_neighbours(percent: float, expected: float) -> None:
    assert stats.percentile([4, 1, 3, 2], percent) == pytest.approx(expected)


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1.0], 101), ([1.0], -1)])
def test_invalid_percentile_is_an_error(samples: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        stats.percentile(samples, percent)


def test_paired_speedup_cancels_shared_drift() -> None:
    drift = [1.0, 2.0, 1.5, 3.0, 1.1, 2.2, 1.7, 2.9, 1.3, 2.4]
    result = stats.paired_speedup([10 * d for d in drift], [15 * d for d in drift])
    assert result == pytest.approx((1.5, 1.5, 1.5))


def test_paired_speedup_has_a_deterministic_interval() -> None:
    draw = random.Random(1)
    ours = [10 * math.exp(draw.gauss(0, 0.05)) for _ in range(10)]
    theirs = [12 * math.exp(draw.gauss(0, 0.05)) for _ in range(10)]
    first = stats.paired_speedup(ours, theirs)
    assert first == stats.paired_speedup(ours, theirs)
    assert first.low < first.middle < first.high
    assert 1.1 < first.low < 1.3


@pytest.mark.parametrize(("ours", "theirs"), [([1.0], [1.0, 2.0]), ([], [])])
def test_unpaired_rounds_are_an_error(ours: list[float], theirs: list[float]) -> None:
    with pytest.raises(ValueError, match="paired"):
        stats.paired_speedup(ours, theirs)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.02, 1.10, "faster"),
        (0.90, 0.98, "slower"),
        (0.995, 1.005, "same"),
        (1.005, 1.10, "undecided"),
        (0.90, 1.005, "undecided"),
        (1.0099, 1.2, "undecided"),
        (1.0101, 1.2, "faster"),
    ],
)
def test_verdict_needs_the_whole_interval(low: float, high: float, verdict: str) -> None:
    assert stats.verdict(Interval((low + high) / 2, low, high), 0.01) == verdict


def test_identical_kernels_rarely_differ() -> None:
    """A/A by simulation: 1 % noise and a drift that both share, ten paired rounds."""
    draw, wrong = random.Random(7), 0
    for _ in range(200):
        drift = [math.exp(draw.gauss(0, 0.02)) for _ in range(10)]
        pairs = [[10 * d * math.exp(draw.gauss(0, 0.01)) for d in drift] for _ in range(2)]
        result = stats.paired_speedup(*pairs, confidence=0.99)
        wrong += stats.verdict(result, 0.01) in ("faster", "slower")
    assert wrong == 0


@pytest.mark.parametrize(
    ("n", "tail", "outside"),
    [
        (10, 0.025, 8),
        (10, 0.005, 3),
        (20, 0.025, 52),
        (25, 0.005, 68),
        (7, 0.005, 0),
        (3, 0.005, 0),
    ],
)
def test_interval_cut_matches_wilcoxons_table(n: int, tail: float, outside: int) -> None:
    logs = [2.0**i for i in range(n)]
    ours, theirs = [1.0] * n, [math.exp(x / 2**n) for x in logs]
    result = stats.paired_speedup(ours, theirs, confidence=1 - 2 * tail)
    means = sorted(math.exp((x + y) / 2 / 2**n) for i, x in enumerate(logs) for y in logs[i:])
    at = min(range(len(means)), key=lambda i: abs(means[i] - result.low))
    assert at == outside or means[at] == pytest.approx(means[outside])


def test_interval_has_its_nominal_coverage() -> None:
    draw, hits = random.Random(3), 0
    for _ in range(1000):
        ours = [math.exp(draw.gauss(0, 0.05)) for _ in range(10)]
        theirs = [1.1 * math.exp(draw.gauss(0, 0.05)) for _ in range(10)]
        result = stats.paired_speedup(ours, theirs)
        hits += result.low <= 1.1 <= result.high
    assert 935 <= hits <= 970  # 95.1 % exactly


def test_middle_mean_drops_a_quarter_at_each_end() -> None:
    assert stats.middle_mean([100, 2, 3, 4, 1, 5, 6, 0]) == pytest.approx(3.5)
    assert stats.middle_mean([1, 2, 9]) == pytest.approx(4)


def test_clock_tick_is_the_smallest_step() -> None:
    assert stats.clock_tick_us([1.024, 3.072, 2.048, 1.024]) == pytest.approx(1.024)
    assert stats.clock_tick_us([5.0, 5.0]) is None


def test_rates_and_shares() -> None:
    assert roofline.gbps(2 * 2**26, 33.55) == pytest.approx(4000.6, abs=1)
    assert roofline.tflops(2 * 4096**3, 180.0) == pytest.approx(763.5, abs=1)
    assert roofline.gbps(None, 1.0) is None
    assert roofline.share_pct(4000, 4240) == pytest.approx(94.3, abs=0.1)
    assert roofline.share_pct(4000, None) is None
    assert roofline.launch_bound(2.0, 2.7)
    assert not roofline.launch_bound(3.0, 2.7)
    assert not roofline.launch_bound(0.1, None)


@pytest.mark.parametrize(
    ("n", "tail", "outside"),
    [
        (26, 0.005, 74),
        (26, 0.025, 98),
        (40, 0.005, 218),
        (30, 1e-9, 0),
        (25, 0.05, 100),
        (2, 0.5, 1),
    ],
)
def test_interval_cut_of_many_rounds(n: int, tail: float, outside: int) -> None:
    # Wilcoxon's table has 75, 98 and 220 for the first three: the normal distribution is near.
    assert stats._signed_rank_cut(n, tail) == outside


def test_too_few_rounds_give_the_whole_range() -> None:
    result = stats.paired_speedup([1.0, 1.0, 1.0], [2.0, 4.0, 8.0], confidence=0.99)
    assert result == pytest.approx((4.0, 2.0, 8.0))
    assert stats.paired_speedup([2.0], [1.0]) == pytest.approx((0.5, 0.5, 0.5))


def test_verdict_at_its_borders() -> None:
    upper, lower = 1.01, 1 / 1.01
    assert stats.verdict(Interval(1.0, lower, upper), 0.01) == "same"
    assert stats.verdict(Interval(1.1, upper, 1.2), 0.01) == "undecided"
    assert stats.verdict(Interval(0.9, 0.8, lower), 0.01) == "undecided"
    assert stats.verdict(Interval(1.0, lower - 1e-9, upper), 0.01) == "undecided"


def test_differences_below_a_tenth_of_a_nanosecond_are_no_tick() -> None:
    assert stats.clock_tick_us([1.0, 1.00005, 1.5]) == pytest.approx(0.49995)
    assert stats.clock_tick_us([1.0, 1.0002, 1.5]) == pytest.approx(0.0002)


def test_launch_bound_at_its_border() -> None:
    assert roofline.launch_bound(2.699, 2.7)
    assert not roofline.launch_bound(2.7, 2.7)
    assert not roofline.launch_bound(0.0, None)


def test_limit_is_the_larger_of_memory_and_arithmetic() -> None:
    assert roofline.limit_us(6_000_000, None, 2000.0, 100.0) == pytest.approx(3.0)
    assert roofline.limit_us(6_000_000, 400_000_000, 2000.0, 100.0) == pytest.approx(4.0)
    assert roofline.limit_us(6_000_000, 200_000_000, 2000.0, 100.0) == pytest.approx(3.0)
    assert roofline.limit_us(None, 400_000_000, 2000.0, 100.0) == pytest.approx(4.0)
    assert roofline.limit_us(6_000_000, 400_000_000, None, 100.0) == pytest.approx(4.0)
    assert roofline.limit_us(6_000_000, 400_000_000, 2000.0, None) == pytest.approx(3.0)
    assert roofline.limit_us(None, None, 2000.0, 100.0) is None
    assert roofline.limit_us(0, 0, 2000.0, 100.0) is None
    assert roofline.share_pct(1.0, 0.0) is None
