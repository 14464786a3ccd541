"""Review of a benchmark by the judge: times that can't be true, and torch beside a slow version.

The subject process measures. Here no version has run: torch is timed again, and the durations are
compared with this process's clock and with the rates of the machine.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

from triton_magics.execution.job_requests import BenchJob
from triton_magics.execution.protocol import Progress
from triton_magics.harness.load import load_op
from triton_magics.harness.process.device import environment
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing import bench_job
from triton_magics.harness.timing.peak_rates import PeakRates, get_peak_rates
from triton_magics.model import Badge, BadgeCode, Benchmark, NotTimed, NotTimedCode, Status, Timing

SHORTEST_KERNEL_US = 0.3  # an empty one takes 0.5 us on an H200
MARGIN = 2.0  # over the measured rates
SLOWED = 1.15
SLOWED_US = 0.5
TORCH_RUNS = 5
CLOCK_SHARE = 0.2  # of the judge's duration that the samples must add up to
CLOCK_GRACE_S = 0.5  # a report may arrive late, the first one too
Steps = Sequence[tuple[float, Progress]]
Condition = tuple[object, ...]  # what torch's time depends on
_TORCH_ALONE: dict[Condition, tuple[Timing, ...]] = {}  # newest times in this process


def review(job: BenchJob, benchmark: Benchmark, steps: Steps, report: Reporter) -> Benchmark:
    """Return the benchmark, void if a time is impossible, with torch's time from here if needed.

    Args:
        job: the benchmark's job.
        benchmark: the answer of the subject process.
        steps: what it reported, each with the time of arrival by this process's clock, seconds.
        report: takes the stage.
    """
    if not benchmark.passed:
        return benchmark
    started = time.monotonic()
    reviewed = _review(job, benchmark, steps, report)
    duration_s = (benchmark.duration_s or 0.0) + time.monotonic() - started
    return reviewed.evolve(duration_s=duration_s)


def _review(job: BenchJob, benchmark: Benchmark, steps: Steps, report: Reporter) -> Benchmark:
    if not benchmark.on_gpu:
        return void_impossible(benchmark, None, steps)
    rates = get_peak_rates(environment(), report)
    benchmark = void_impossible(benchmark, rates, steps)
    if not benchmark.passed:
        return benchmark
    alone = torch_alone(job, benchmark, lambda: _time_torch(job, report, rates))
    return replace_slowed_torch(benchmark, alone)


def torch_alone(
    job: BenchJob, benchmark: Benchmark, measure: Callable[[], tuple[Timing, ...]]
) -> tuple[Timing, ...]:
    """Return torch's times in this process, measured again only where torch looks slowed down.

    Args:
        job: the benchmark's job.
        benchmark: what the subject process measured.
        measure: times torch in this process, 0.1 s on an H200.
    """
    condition = (job.op, job.sizes, job.dtype, job.cold, job.timer)
    earlier = _TORCH_ALONE.get(condition)
    if earlier is None or replace_slowed_torch(benchmark, earlier) != benchmark:
        earlier = _TORCH_ALONE[condition] = measure()
    return earlier


def void_impossible(benchmark: Benchmark, rates: PeakRates | None, steps: Steps) -> Benchmark:
    """Return the benchmark; failed and without its times if one of them can't be true."""
    for timing in benchmark.timings:
        reason = impossible_reason(timing, rates, cold=benchmark.cold)
        if reason or (reason := _clock_reason(timing, steps)):
            message = f"{timing.provider} at {timing.size}: impossible time: {reason}"
            missing = NotTimed(
                size=timing.size, provider=timing.provider, reason=message,
                code=NotTimedCode.IMPOSSIBLE,
            )  # fmt: skip
            others = tuple(t for t in benchmark.timings if t.provider != timing.provider)
            return benchmark.evolve(
                status=Status.FAILED,
                message=message,
                timings=others,
                comparisons=(),
                not_timed=(*benchmark.not_timed, missing),
            )
    return benchmark


def impossible_reason(timing: Timing, rates: PeakRates | None, *, cold: bool) -> str | None:
    """Return why a time is shorter than the machine allows; None if it is not."""
    median_us = timing.median_us
    if timing.min_us <= 0:
        return f"{timing.min_us:g} us"
    if rates is None:
        return None
    if median_us < SHORTEST_KERNEL_US:
        return f"{median_us:.3g} us is less than an empty kernel takes"
    moved_us = (timing.bytes or 0) / (rates.copy_gbps * 1e3) / MARGIN if cold else 0.0
    if median_us < moved_us:
        return f"{median_us:.3g} us for {timing.bytes} bytes exceeds the memory bandwidth"
    peak_tflops = max(rates.matmul_tflops.values(), default=float("inf"))
    computed_us = (timing.flops or 0) / (peak_tflops * 1e6) / MARGIN
    if median_us < computed_us:
        return f"{median_us:.3g} us for {timing.flops} operations exceeds the matmul rate"
    return None


def _clock_reason(timing: Timing, steps: Steps) -> str | None:
    """Return why an interpreter's time contradicts this process's clock; None if it does not."""
    if timing.clock != "interpreter":
        return None
    for (start_s, _), (end_s, progress) in itertools.pairwise(steps):
        if progress.timing != timing:
            continue
        claimed_s, passed_s = sum(timing.samples_us) / 1e6, end_s - start_s
        if claimed_s > passed_s + CLOCK_GRACE_S or claimed_s < CLOCK_SHARE * (
            passed_s - CLOCK_GRACE_S
        ):
            return f"{claimed_s:.3g} s of runs in {passed_s:.3g} s"
    return None


def _time_torch(job: BenchJob, report: Reporter, rates: PeakRates | None) -> tuple[Timing, ...]:
    """Return torch's times in this process."""
    report.stage("timing torch apart from the versions", patience_s=60)
    alone = job.evolve(
        versions=(), against=(), baselines=(), runs=TORCH_RUNS, budget_s=0.0, census=False
    )
    silent = Reporter(lambda frame: None, "")
    uuid = environment().gpu_uuid
    with gpu_lock(uuid, exclusive=True, purpose="timing torch", on_wait=report.waiting):
        measured = bench_job.measure(alone, load_op(job.op), (), silent, peak_rates=rates)
    return tuple(t for t in measured["timings"] if t.provider == "torch")


def replace_slowed_torch(benchmark: Benchmark, alone: Sequence[Timing]) -> Benchmark:
    """Return the benchmark with torch's own time where a version's process slowed it down."""
    for timing in alone:
        beside = next(
            (t for t in benchmark.timings if (t.provider, t.size) == ("torch", timing.size)), None
        )
        if beside is None or beside.mean_us <= max(
            SLOWED * timing.mean_us, timing.mean_us + SLOWED_US
        ):
            continue
        times = round(beside.mean_us / timing.mean_us, 2)
        badge = Badge.of(BadgeCode.SLOWED_TORCH, size=timing.size, times=times)
        benchmark = benchmark.evolve(
            timings=tuple(timing if t == beside else t for t in benchmark.timings),
            comparisons=tuple(
                c for c in benchmark.comparisons
                if c.size != timing.size or "torch" not in (c.candidate, c.baseline)
            ),
            badges=(*benchmark.badges, badge),
        )  # fmt: skip
    return benchmark


__all__ = ["impossible_reason", "replace_slowed_torch", "review", "torch_alone", "void_impossible"]
