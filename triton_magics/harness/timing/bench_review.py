"""Review of a benchmark by the judge: times that can't be true, and torch beside a slow version.

The subject process measures. Here no version has run: torch is timed again, and the durations are
compared with this process's clock and with the rates of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.load import load_op
from triton_magics.harness.process.device import environment
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing import bench_job
from triton_magics.harness.timing.judged_contents import ContentsJudge
from triton_magics.harness.timing.peak_rates import PeakRates, describe_failure, get_peak_rates
from triton_magics.model import Badge, BadgeCode, Benchmark, NotTimed, NotTimedCode, Status, Timing

SHORTEST_KERNEL_US = 0.3  # an empty one takes 0.5 us on an H200
MARGIN = 2.0  # over the measured rates
SLOWED = 1.15
SLOWED_US = 0.5
TORCH_RUNS = 5
CLOCK_SHARE = 0.5  # of the time that passed for the judge, which the runs must add up to
CLOCK_GRACE_S = 0.5  # a report may arrive late, the first one too
Condition = tuple[object, ...]  # what torch's time depends on
_TORCH_ALONE: dict[Condition, tuple[Timing, ...]] = {}  # newest times in this process


def review(
    job: BenchJob, benchmark: Benchmark, judge: ContentsJudge, report: Reporter
) -> Benchmark:
    """Return the benchmark, void if a time is impossible, with torch's time from here if needed.

    Args:
        job: the benchmark's job.
        benchmark: the answer of the subject process.
        judge: has judged the outputs, and has measured by this process's clock.
        report: takes the stage.
    """
    if not benchmark.passed:
        return benchmark
    started = time.monotonic()
    reviewed = _review(job, benchmark, judge, report)
    duration_s = (benchmark.duration_s or 0.0) + time.monotonic() - started
    return reviewed.evolve(duration_s=duration_s)


def _review(
    job: BenchJob, benchmark: Benchmark, judge: ContentsJudge, report: Reporter
) -> Benchmark:
    if not benchmark.on_gpu:
        return void_impossible(benchmark, None, judge)
    rates = get_peak_rates(environment(), report)
    if rates is None and (note := describe_failure(environment())):
        benchmark = benchmark.evolve(conditions=(*benchmark.conditions, note))
    benchmark = void_impossible(benchmark, rates, judge)
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
    condition = (job.op, job.sizes, job.dtype, job.cold, job.timer, job.backward_only)
    earlier = _TORCH_ALONE.get(condition)
    if earlier is None or replace_slowed_torch(benchmark, earlier) != benchmark:
        earlier = _TORCH_ALONE[condition] = measure()
    return earlier


def void_impossible(
    benchmark: Benchmark, rates: PeakRates | None, judge: ContentsJudge | None
) -> Benchmark:
    """Return the benchmark; failed and without its times if one of them can't be true.

    Args:
        benchmark: the answer of the subject process.
        rates: of the machine, if known.
        judge: of its outputs; None if the subject process judged them itself.
    """
    for timing in benchmark.timings:
        reason = impossible_reason(timing, rates, cold=benchmark.cold)
        is_judged = judge and judge.memory and timing.provider in benchmark.versions
        if judge and is_judged:
            reason = reason or _clock_reason(timing, judge, whole=not benchmark.backward_only)
        if reason:
            reason = f"impossible time: {reason}"
            return _void(benchmark, timing, reason, NotTimedCode.IMPOSSIBLE)
        if judge and is_judged and (reason := _unjudged_reason(timing, judge)):
            return _void(benchmark, timing, reason, NotTimedCode.WRONG_OUTPUT)
    return benchmark


def _void(benchmark: Benchmark, timing: Timing, reason: str, code: NotTimedCode) -> Benchmark:
    """Return the benchmark without the times of the provider of one that does not count."""
    message = f"{timing.provider} at {timing.size}: {reason}"
    missing = NotTimed(size=timing.size, provider=timing.provider, reason=message, code=code)
    others = tuple(t for t in benchmark.timings if t.provider != timing.provider)
    return benchmark.evolve(
        status=Status.FAILED,
        message=message,
        timings=others,
        comparisons=(),
        not_timed=(*benchmark.not_timed, missing),
    )


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


def _clock_reason(timing: Timing, judge: ContentsJudge, *, whole: bool) -> str | None:
    """Return why a time contradicts the judge's clock; None if it does not.

    The clock runs from the judge's answer to the check of a run. In the interpreter little more
    than the run is in between; on a GPU runs of torch and waits are, too.

    Args:
        timing: of a version.
        judge: of its outputs.
        whole: the calls were timed whole, without a forward pass before them.
    """
    runs_us = (*timing.samples_us, *timing.extra_us)
    claimed_s = timing.calls * sum(runs_us) / 1e6
    passed_s = judge.passed_s[timing.provider, timing.size]
    is_near = timing.clock == "interpreter" and whole
    is_short = is_near and claimed_s < CLOCK_SHARE * (passed_s - CLOCK_GRACE_S)
    if is_short or claimed_s > passed_s + CLOCK_GRACE_S:
        return f"{claimed_s:.3g} s of runs in {passed_s:.3g} s"
    return None


def _unjudged_reason(timing: Timing, judge: ContentsJudge) -> str | None:
    """Return why a time has no right outputs; None if the judge has seen one of each call."""
    n_calls = timing.calls * (len(timing.samples_us) + len(timing.extra_us))
    n_right = judge.n_right[timing.provider, timing.size]
    if n_right >= n_calls:
        return None
    return f"the judge has seen {n_right} right outputs of {n_calls} timed calls"


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
