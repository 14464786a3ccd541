"""The clock's arithmetic against numbers worked by hand: runs, rounds, finals, verdicts."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests import report_values
from tests.harness.sessions import provider, right, session
from triton_magics.harness.timing import rounds, speed_verdicts
from triton_magics.harness.timing.rounds import time_all_sizes
from triton_magics.model import (
    Benchmark,
    Census,
    CensusKernel,
    Comparison,
    NotTimedCode,
    Status,
    Timing,
)


def test_constants_of_the_clock() -> None:
    assert (rounds.WARM_CALLS, rounds.EXTRA_ROUNDS, rounds.MAX_ROUNDS) == (3, 15, 100)
    assert rounds.SMALL_SETS == 32
    assert speed_verdicts.EQUIVALENCE_MARGIN == 0.01
    assert speed_verdicts.EQUIVALENCE_CONFIDENCE == 0.95


def test_time_of_a_run_is_the_mean_of_its_middle_half() -> None:
    # A call of 9 us is made 12 times a run; warm-up takes three calls of each provider.
    script = itertools.chain(
        [9.0] * 9, itertools.cycle([1.0, 2.0, 3.0] + [9.0, 11.0] * 3 + [90.0] * 3)
    )
    one = session(provider(right), raw_us=lambda: next(script), runs=2)
    for timing in time_all_sizes(one)["timings"]:
        assert timing.calls == 12
        assert timing.raw_us == pytest.approx((10.0, 10.0))  # without the 3 least and greatest
        assert timing.samples_us == pytest.approx((7.5, 7.5))  # without the timer's 2.5


def run_undecided(**changes: Any) -> tuple[int, dict[str, Any]]:
    """Return the rounds of a version that is now faster, now slower, and the result."""
    script = itertools.cycle([50.0, 100.0, 100.0, 50.0, 100.0])
    one = session(provider(right), raw_us=lambda: next(script), runs=10)
    result = time_all_sizes(replace(one, **changes))
    (version,) = (t for t in result["timings"] if t.provider == "v1_a")
    return len(version.samples_us) + len(version.extra_us), result


def test_a_deadline_ends_the_extra_rounds() -> None:
    n, result = run_undecided(deadline=time.monotonic() - 1)
    assert n == 10
    assert result["comparisons"][0].verdict == "undecided"


def test_extra_rounds_come_fifteen_at_a_time_to_a_hundred() -> None:
    n, result = run_undecided(deadline=time.monotonic() + 600)
    assert n == 100 or (n - 10) % 15 == 0
    assert n > 10
    (version,) = (t for t in result["timings"] if t.provider == "v1_a")
    assert len(version.samples_us) == 10  # official runs alone make the mean


def test_no_final_of_mixed_clocks() -> None:
    timings = [report_values.timing("v1_baseline", size, 10.0) for size in ("small", "medium")]
    other = report_values.timing("v1_baseline", "large", 40.0, clock="graph")
    same = report_values.timing("v1_baseline", "large", 40.0)
    mixed = _benchmark(*timings, other)
    assert mixed.final_us("v1") is None
    assert _benchmark(*timings).final_us("v1") is None
    assert _benchmark(*timings, same).final_us("v1") == pytest.approx(20.0, rel=1e-6)


def _timing(provider: str, size: str, us: float, clock: Any = "gpu") -> Timing:
    return Timing(provider=provider, size=size, shape=(1,), clock=clock, samples_us=(us,))


def _benchmark(*timings: Timing, **changes: Any) -> Benchmark:
    names = tuple(dict.fromkeys(t.provider for t in timings))
    versions = tuple(n for n in names if n.startswith("v"))
    values: dict[str, Any] = {
        "status": Status.PASSED, "op": "softmax", "versions": versions,
        "sha256s": tuple("a" * 64 for _ in versions), "providers": names,
        "sizes": ("small", "medium", "large"), "runs": 1, "dtype": "float32", "clock": "gpu",
        "timings": timings, "seed": 1,
    }  # fmt: skip
    return Benchmark(**values | changes)


def _all_sizes(**us: tuple[float, float, float]) -> list[Timing]:
    return [
        _timing(name, size, each)
        for name, times in us.items()
        for size, each in zip(("small", "medium", "large"), times, strict=True)
    ]


def test_figures_of_a_benchmark() -> None:
    one = _benchmark(
        *_all_sizes(torch=(10.0, 20.0, 90.0), v1_a=(5.0, 20.0, 15.0), v2_b=(1.0, 1.0, 10.0))
    )
    assert one.final_us("torch") == 40.0
    assert one.final_us("v1") == pytest.approx(40 / 3)
    assert one.speedup("v1") == pytest.approx(3.0)
    assert one.speedup("v1", "v2_b") == pytest.approx(4 / (40 / 3))
    assert one.size_speedup("v1", "small") == 2.0
    assert one.geomean_speedup("v1") == pytest.approx(12 ** (1 / 3))
    assert one.fastest == "v2_b"
    assert one.speedup("v1", "v9_z") is None
    assert one.size_speedup("v1", "small", "v9_z") is None
    assert one.size_speedup("v1", "huge") is None


def test_nothing_is_ranked_without_a_gpu() -> None:
    for clock in (None, "interpreter"):
        one = _benchmark(*_all_sizes(torch=(1.0, 1.0, 1.0), v1_a=(1.0, 1.0, 1.0)), clock=clock)
        figures = (one.on_gpu, one.speedup("v1"), one.size_speedup("v1", "small"), one.fastest)
        assert figures == (False, None, None, None)
    assert _benchmark(*_all_sizes(v1_a=(1.0, 1.0, 1.0))[:2]).geomean_speedup("v1") is None


def test_summaries_of_a_timing() -> None:
    one = Timing(
        provider="torch", size="small", shape=(1,), clock="gpu",
        samples_us=(1.0, 2.0, 6.0), bytes=6000, flops=9_000_000,
    )  # fmt: skip
    assert (one.mean_us, one.median_us, one.min_us, one.max_us) == (3.0, 2.0, 1.0, 6.0)
    assert one.std_us == pytest.approx(7**0.5)
    assert (one.gbps, one.tflops) == (pytest.approx(2.0), pytest.approx(3.0))
    assert one.percentile_us(75) == 4.0
    alone = one.evolve(samples_us=(2.0,))
    assert (alone.std_us, alone.calls) == (None, 1)


def test_census_has_the_share_of_triton() -> None:
    kernels = (
        CensusKernel(name="a", stream=7, count=1, us=3.0, triton=True),
        CensusKernel(name="b", stream=2, count=1, us=1.0, triton=False),
        CensusKernel(name="c", stream=7, count=1, us=0.0, triton=False),
    )
    one = Census(provider="v1", size="small", kernels=kernels)
    assert (one.streams, one.triton_share) == ((2, 7), 0.75)
    assert Census(provider="v1", size="small").triton_share is None


# ----------------------------------------------------------------------------------- verdicts


def compare(tick_us: float | None = None, **us: list[float]) -> dict[tuple[str, str], Comparison]:
    names = {name.replace("again", speed_verdicts.CONTROL): times for name, times in us.items()}
    pairs, _ = speed_verdicts.compare_times(names, tick_us, "small")
    return {(c.candidate, c.baseline): c for c in pairs}


def test_threshold_is_a_percent_or_a_tick() -> None:
    times = {"torch": [10.0] * 10, "v1_a": [5.0] * 10}
    assert compare(**times)["v1_a", "torch"].threshold == 0.01
    assert compare(0.04, **times)["v1_a", "torch"].threshold == 0.01
    assert compare(0.1, **times)["v1_a", "torch"].threshold == pytest.approx(0.02)


def test_control_noise_above_its_threshold_widens() -> None:
    times = {"torch": [10.0] * 10, "v1_a": [5.0] * 10}
    noisy = compare(again=[10.5] * 10, **times)["v1_a", "torch"]
    assert noisy.threshold == pytest.approx(1 - 10 / 10.5)
    calm = compare(again=[10.05] * 10, **times)["v1_a", "torch"]
    assert calm.threshold == 0.01


def test_comparison_has_the_ratio_and_its_rounds() -> None:
    one = compare(torch=[10.0] * 10, v1_a=[5.0] * 8)["v1_a", "torch"]
    assert (one.ratio, one.low, one.high, one.rounds) == (
        pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0), 8
    )  # fmt: skip
    assert (one.verdict, one.size) == ("faster", "small")


def test_same_needs_less_confidence_than_faster() -> None:
    # Of ten rounds the 95 % interval leaves out the outliers; that of 99 % does not.
    ours = [100.0] * 7 + [99.0] * 3
    one = compare(torch=[100.0] * 10, v1_a=ours)["v1_a", "torch"]
    assert (one.low, one.high) == (pytest.approx(1.0), pytest.approx(1 / 0.99))
    assert one.verdict == "same"


def test_neighbours_and_baselines_are_compared_once() -> None:
    us = {n: [1.0] * 5 for n in ("torch", "v1_a", "v2_b", "torch.compile", speed_verdicts.CONTROL)}
    pairs, control = speed_verdicts.compare_times(us, None, "small", ("v1_a", "torch", "absent"))
    assert [(c.candidate, c.baseline) for c in pairs] == [
        ("v1_a", "torch"), ("v2_b", "torch"), ("torch.compile", "torch"), ("v2_b", "v1_a")
    ]  # fmt: skip
    assert [(c.candidate, c.baseline) for c in control] == [(speed_verdicts.CONTROL, "torch")]
    del us["torch"]
    pairs, control = speed_verdicts.compare_times(us, None, "small")
    assert [(c.candidate, c.baseline) for c in pairs] == [("v2_b", "v1_a")]
    assert control == []


def test_undecided_providers_get_more_rounds() -> None:
    wild = [50.0, 200.0] * 5
    calm = {"torch": [100.0] * 10, speed_verdicts.CONTROL: [100.0] * 10, "v1_a": [50.0] * 10}
    assert speed_verdicts.undecided_providers(calm, None) == set()
    names = speed_verdicts.undecided_providers(calm | {"v2_b": wild}, None)
    assert names == {"torch", speed_verdicts.CONTROL, "v1_a", "v2_b"}
    only = {"v1_a": [50.0] * 10, "v2_b": wild}
    assert speed_verdicts.undecided_providers(only, None) == {"v1_a", "v2_b"}


def test_extra_rounds_feed_the_verdict() -> None:
    slow = Timing(
        provider="v1_a", size="small", shape=(1,), clock="gpu",
        samples_us=(10.0,) * 3, extra_us=(10.0,) * 7,
    )  # fmt: skip
    fast = slow.evolve(provider="torch", samples_us=(5.0,) * 3, extra_us=(5.0,) * 7)
    ((one,), _) = speed_verdicts.compare_timings([fast, slow], None)
    assert (one.rounds, one.verdict, one.size) == (10, "slower", "small")
    assert speed_verdicts.compare_timings([], None) == ([], [])


# ------------------------------------------------------------------------------------- rounds


def test_a_size_that_was_timed_passes() -> None:
    def fails(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    result = time_all_sizes(session(provider(fails), sizes=("small", "medium"), runs=2))
    assert result["status"] is Status.PASSED
    assert [(n.size, n.provider) for n in result["not_timed"]] == [
        ("small", "v1_a"), ("medium", "v1_a")
    ]  # fmt: skip
    assert {t.size for t in result["timings"]} == {"small", "medium"}
    assert [c.size for c in result["controls"]] == ["small", "medium"]


def test_wrong_output_of_a_baseline_in_a_run_drops_it() -> None:
    calls = itertools.count()

    def drifts(x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1) + (next(calls) > 8)

    one = session(rounds.Provider("m:drifts", drifts), baselines=("m:drifts",), runs=6)
    result = time_all_sizes(one)
    (missing,) = result["not_timed"]
    assert (missing.provider, missing.code) == ("m:drifts", NotTimedCode.WRONG_OUTPUT)
    assert missing.reason.startswith("it does not compute sum: ")
    assert result["status"] is Status.PASSED
