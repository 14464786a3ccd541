"""Tests of the judge's review of a benchmark."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.ceilings_kit import FAILS, measured_by
from tests.harness.ceilings_kit import GPU as UNMEASURED
from tests.report_values.kernels import GPU
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.process.shared_memory import SharedMemory
from triton_magics.harness.timing import bench_review, peak_rates
from triton_magics.harness.timing.bench_job import RAW_TIMES
from triton_magics.harness.timing.bench_review import (
    impossible_reason,
    replace_slowed_torch,
    review,
    torch_alone,
    void_impossible,
)
from triton_magics.harness.timing.judged_contents import ContentsJudge
from triton_magics.harness.timing.peak_rates import PeakRates
from triton_magics.model import (
    BadgeCode,
    Benchmark,
    NotTimedCode,
    Status,
    Timing,
)
from triton_magics.rendering.views import bundle

RATES = PeakRates(
    measured="today", copy_gbps=4000.0, matmul_tflops={"float16": 700.0}, cold={}, hot={}
)


def timing(provider: str = "v1_a", us: float = 40.0, **changes: object) -> Timing:
    fields = {"size": "large", "shape": (4096, 4096), "clock": "gpu", "bytes": 2**27, **changes}
    return Timing(provider=provider, samples_us=(us,) * 3, **fields)


def benchmark(*timings: Timing, clock: str = "gpu") -> Benchmark:
    return Benchmark(
        op="softmax",
        status=Status.PASSED,
        versions=("v1_a",),
        sha256s=("0" * 64,),
        providers=("torch", "v1_a"),
        sizes=("large",),
        runs=3,
        dtype="float32",
        clock=clock,
        timings=timings,
        environment=GPU,
        seed=1,
    )


@pytest.mark.parametrize(
    ("us", "changes", "is_impossible"),
    [
        (34.0, {}, False),  # 128 MiB at 4 TB/s
        (17.0, {}, False),  # half of it: an L2 may hold what was written
        (16.0, {}, True),
        (0.08, {"bytes": 1000}, True),  # less than an empty kernel
        (1.0, {"bytes": 1000}, False),
        (0.0, {"bytes": None}, True),
        (-5.0, {"bytes": None}, True),
        (90.0, {"bytes": None, "flops": 2 * 4096**3}, True),
        (110.0, {"bytes": None, "flops": 2 * 4096**3}, False),
    ],
)
def test_a_time_that_the_machine_does_not_allow_is_impossible(
    us: float, changes: dict[str, object], is_impossible: bool
) -> None:
    reason = impossible_reason(timing(us=us, **changes), RATES, cold=True)
    assert (reason is not None) == is_impossible, reason


def test_an_impossible_time_voids_the_benchmark() -> None:
    void = void_impossible(benchmark(timing("torch", 80.0), timing(us=0.1)), RATES, None)
    assert void.status is Status.FAILED
    assert [t.provider for t in void.timings] == ["torch"]
    assert void.not_timed[0].code is NotTimedCode.IMPOSSIBLE
    assert "impossible" in str(void.message)


def judge(n_right: int, passed_s: float) -> ContentsJudge:
    """Return a judge that has seen outputs of v1 at large."""
    job = BenchJob(
        op=OpRef(name="softmax"), versions=(), sizes=("large",), runs=3, dtype="float32", seed=1,
        budget_s=1.0,
    )  # fmt: skip
    one = ContentsJudge(job, SharedMemory(mmap.mmap(-1, 2**16)))
    one.n_right["v1_a", "large"] = n_right
    one.passed_s["v1_a", "large"] = passed_s
    return one


@pytest.mark.parametrize(
    ("passed_s", "is_void"), [(3.1, False), (2.98, False), (40.0, True), (1.0, True)]
)
def test_an_interpreters_time_agrees_with_the_clock_of_the_judge(
    passed_s: float, is_void: bool
) -> None:
    one = benchmark(timing(us=1e6, clock="interpreter"), clock="interpreter")
    void = void_impossible(one, None, judge(3, passed_s))
    assert (void.status is Status.FAILED) == is_void


def test_a_backward_pass_alone_leaves_time_for_the_forward_pass() -> None:
    one = benchmark(timing(us=1e6, clock="interpreter"), clock="interpreter")
    alone = one.evolve(backward_only=True)
    assert void_impossible(alone, None, judge(3, 40.0)).passed
    assert not void_impossible(alone, None, judge(3, 1.0)).passed


@pytest.mark.parametrize(("n_right", "is_void"), [(30, False), (29, True), (0, True)])
def test_a_time_needs_a_right_output_of_each_call(n_right: int, is_void: bool) -> None:
    void = void_impossible(benchmark(timing(calls=10)), RATES, judge(n_right, 1.0))
    assert (void.status is Status.FAILED) == is_void
    if is_void:
        assert void.timings == ()
        assert f"{n_right} right outputs of 30 timed calls" in str(void.message)


def test_torch_that_a_version_slows_down_has_its_own_time() -> None:
    slowed = benchmark(timing("torch", 400.0), timing(us=50.0))
    reviewed = replace_slowed_torch(slowed, [timing("torch", 80.0)])
    assert reviewed.timing("torch", "large").mean_us == 80.0
    (badge,) = reviewed.badges
    assert (badge.code, badge.params["times"]) == (BadgeCode.SLOWED_TORCH, 5.0)


def test_torch_that_varies_a_little_stays() -> None:
    measured = benchmark(timing("torch", 84.0), timing(us=50.0))
    assert replace_slowed_torch(measured, [timing("torch", 80.0)]) == measured


def bench_job(op: str, **changes: object) -> BenchJob:
    fields = {"versions": (), "sizes": ("large",), "runs": 3, "dtype": "float32", "seed": 1}
    return BenchJob(op=OpRef(name=op), budget_s=1.0, **{**fields, **changes})


def test_torch_is_timed_again_only_where_it_looks_slowed_down() -> None:
    job = bench_job("timed_again")
    times: Iterator[float] = iter((80.0, 82.0))

    def measure() -> tuple[Timing, ...]:
        return (timing("torch", next(times)),)

    steady = benchmark(timing("torch", 84.0), timing(us=50.0))
    slowed = benchmark(timing("torch", 400.0), timing(us=50.0))
    assert torch_alone(job, steady, measure)[0].mean_us == 80.0
    assert torch_alone(job, steady, measure)[0].mean_us == 80.0
    assert torch_alone(job, slowed, measure)[0].mean_us == 82.0


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": ("small",)},
        {"dtype": "float16"},
        {"cold": False},
        {"timer": "graph"},
        {"backward_only": True},
    ],
)
def test_torch_is_timed_again_in_other_conditions(changes: dict[str, object]) -> None:
    steady = benchmark(timing("torch", 84.0), timing(us=50.0))
    torch_alone(bench_job("conditions"), steady, lambda: (timing("torch", 80.0),))
    other = torch_alone(bench_job("conditions", **changes), steady, lambda: (timing("torch", 9.0),))
    assert other[0].mean_us == 9.0


def test_the_review_counts_in_the_duration() -> None:
    measured = benchmark(timing(us=1e6, clock="interpreter"), clock="interpreter")
    reviewed = review(
        bench_job("softmax"), measured.evolve(duration_s=2.0), (), Reporter(print, "")
    )
    assert reviewed.duration_s is not None
    assert reviewed.duration_s > 2.0


def test_the_review_says_why_the_peak_rates_are_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured_by(FAILS.format(folder=tmp_path), monkeypatch, tmp_path)
    monkeypatch.setattr(bench_review, "environment", lambda: UNMEASURED)
    job = bench_job("unknown_rates")
    raw = benchmark(timing("torch", 84.0), timing(us=50.0)).evolve(badges=(RAW_TIMES,))
    torch_alone(job, raw, lambda: (timing("torch", 80.0),))
    for _ in range(2):
        reviewed = review(job, raw, (), Reporter(print, ""))
        text = " ".join(bundle(reviewed)["text/plain"].split())
        assert "raw times" in text
        assert (
            "peak rates unknown: RuntimeError: no CUDA-capable device is detected; "
            "restart the notebook's kernel, or the server, to measure again"
        ) in text
    assert (tmp_path / "runs").read_text() == "ran\n"
    peak_rates._path(UNMEASURED).write_text(RATES.model_dump_json())
    assert review(job, raw, (), Reporter(print, "")).conditions == ()
