"""Figures of a benchmark, its timings and its runs, against numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests import report_values
from triton_magics.model import (
    Benchmark,
    Census,
    CensusKernel,
    Comparison,
    RunResult,
    SelfCheck,
    SelfTest,
    Status,
    TensorSummary,
    Timing,
)
from triton_magics.model.benchmark import CONFIDENCE


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


def test_a_standard_deviation_needs_two_runs() -> None:
    one = _timing("torch", "small", 1.0).evolve(samples_us=(1.0, 3.0))
    assert one.std_us == pytest.approx(2**0.5)
    assert one.evolve(samples_us=(1.0,)).std_us is None


def test_defaults_of_a_benchmark() -> None:
    assert CONFIDENCE == 0.99
    one = _benchmark(*_all_sizes(torch=(1.0, 1.0, 1.0)))
    assert (one.cold, one.timings[0].calls) == (True, 1)
    assert TensorSummary(shape=(2,), dtype="float32", device="cpu").n_nan == 0


def test_a_missing_time_gives_no_speedup() -> None:
    one = _benchmark(
        *_all_sizes(torch=(10.0, 20.0, 90.0)), _timing("v1_a", "small", 5.0),
        *_all_sizes(v2_b=(1.0, 1.0, 10.0))[1:],
    )  # fmt: skip
    assert (one.speedup("v1"), one.speedup("v2")) == (None, None)
    assert one.speedup("v2", "v1_a") is None
    assert one.size_speedup("v1", "small") == 2.0
    assert one.size_speedup("v1", "large") is None  # only torch was timed
    assert one.size_speedup("v2", "large", "v1_a") is None  # only the version was
    assert one.geomean_speedup("v1") is None


def _comparison(candidate: str, baseline: str, size: str, ratio: float) -> Comparison:
    return Comparison(
        candidate=candidate, baseline=baseline, size=size, ratio=ratio, low=ratio, high=ratio,
        threshold=0.01, rounds=10, verdict="faster",
    )  # fmt: skip


def test_a_comparison_is_that_of_the_pair_and_size() -> None:
    pairs = (
        _comparison("v1_a", "torch", "small", 2.0),
        _comparison("v1_a", "torch", "large", 3.0),
        _comparison("v2_b", "v1_a", "small", 4.0),
    )
    times = _all_sizes(torch=(1.0, 1.0, 1.0), v1_a=(1.0, 1.0, 1.0), v2_b=(1.0, 1.0, 1.0))
    one = _benchmark(*times, comparisons=pairs)
    assert one.comparison("v1", "large") == pairs[1]
    assert one.comparison("v2", "small", "v1") == pairs[2]
    assert one.comparison("v2", "small") is None


def test_limit_of_a_size_is_that_of_its_traffic() -> None:
    times = [
        t.evolve(bytes=n_bytes, flops=8_000_000)
        for t, n_bytes in zip(_all_sizes(torch=(9.0,) * 3), (4000, 8000, 16000), strict=True)
    ]
    one = _benchmark(*times, copy_gbps=4.0, matmul_tflops={"float32": 1.0, "float16": 2.0})
    assert one.limit_us("small") == pytest.approx(8.0)  # 8e6 operations at 1e12 a second
    fast = one.evolve(matmul_tflops={"float32": 1000.0})
    assert [fast.limit_us(s) for s in fast.sizes] == pytest.approx([1.0, 2.0, 4.0])
    assert fast.limit_us("huge") is None
    assert fast.evolve(clock="interpreter").limit_us("small") is None
    assert one.evolve(matmul_tflops={}, copy_gbps=None).limit_us("small") is None


def _run(**changes: Any) -> RunResult:
    values = {
        "status": "passed", "op": "softmax", "version": "v1_a", "inputs": "x", "attempt": 1,
        "sha256": "a" * 64, "first_call_ms": 2.0, "second_call_ms": 1.0,
    }  # fmt: skip
    return RunResult.model_validate(values | changes)


def test_a_run_that_passed_has_two_durations() -> None:
    assert _run().second_call_ms == 1.0
    for missing in ("first_call_ms", "second_call_ms"):
        with pytest.raises(ValueError, match="softmax v1_a: a run that passed has its two dur"):
            _run(**{missing: None})
        failed = _run(**{missing: None, "status": "failed"})
        assert failed.status is Status.FAILED


def test_a_self_test_passes_by_its_checks() -> None:
    right = SelfCheck(name="a", passed=True, outcome="6 us")
    wrong = SelfCheck(name="b", passed=False, outcome="9 us")
    for checks in ((), (wrong,), (right, wrong)):
        with pytest.raises(ValueError, match="passes only if it has checks and all of them pass"):
            SelfTest(status=Status.PASSED, checks=checks)
        assert SelfTest.model_validate({"status": "failed", "checks": checks}).checks == checks
    assert SelfTest(status=Status.PASSED, checks=(right,)).passed


def test_an_older_check_has_other_names() -> None:
    older = SelfCheck.model_validate({"what": "a", "passed": True, "said": "6 us"})
    assert older == SelfCheck(name="a", passed=True, outcome="6 us")
