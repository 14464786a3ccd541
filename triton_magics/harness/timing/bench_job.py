"""Benchmark job: time versions beside torch and other baselines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness.case_inputs import make_meta, make_pristine
from triton_magics.harness.correctness.remote_calls import name_record
from triton_magics.harness.load import (
    LoadedVersion,
    LoadError,
    UserFault,
    compile_cache,
    load_op,
    load_version,
    make_kernel_error,
    one_line_error,
)
from triton_magics.harness.process.device import CPU, environment, kernel_runtime, this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timers.gated_timer import (
    CalibratedTimer,
    Calibration,
    GatedTimer,
    no_garbage_collection,
)
from triton_magics.harness.timers.graph_timer import GraphTimer
from triton_magics.harness.timers.launch_timer import LaunchTimer
from triton_magics.harness.timing import gpu_conditions, interpreter_timing
from triton_magics.harness.timing.baselines import (
    TORCH_COMPILE,
    import_torch_compile,
    load_baseline,
    make_providers,
)
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.harness.timing.kernel_census import Profile, profile_kernels, take_census
from triton_magics.harness.timing.peak_rates import PeakRates, get_peak_rates
from triton_magics.harness.timing.rounds import TimingSession, failure_reason, time_all_sizes
from triton_magics.harness.timing.torch_settings import TorchSettings
from triton_magics.model import Badge, BadgeCode, Benchmark, Census, NotTimed, Status, shape_text

TIMERS = {"gated": GatedTimer, "graph": GraphTimer, "launch": LaunchTimer}
_CALIBRATIONS: dict[tuple[str, bool], Calibration] = {}
RAW_TIMES = Badge.of(BadgeCode.RAW_TIMES)


def run(job: BenchJob, report: Reporter) -> tuple[Answer, bool]:
    """Run the benchmark, in the interpreter if there is no GPU."""
    started = time.monotonic()
    device = this_device()
    report.environment(environment())
    op = load_op(job.op)
    _check_request(job, op)
    base = _empty_benchmark(job, op)
    builds = any(kernel_runtime(ref.language).builds_on_load for ref in job.versions)
    report.stage("loading", patience_s=job.compile_s if builds else 0.0)
    for name in job.against:
        load_baseline(name, op)  # refuse a bad name before the timing
    check_sizes(op, job.sizes, job.dtype, job.seed)
    settings, names = TorchSettings(), name_record()
    names.accept()
    with fake_gpu(device):
        versions, missing = _load_versions(job)
    if replaced := names.restore():
        return _finish(_void(base, replaced), started, missing), True
    if not versions:
        return _finish(base.evolve(not_timed=missing), started), True
    if device == CPU:
        filled = interpreter_timing.run(job, op, versions, base, report)
        if replaced := names.restore():
            return _finish(_void(base, replaced), started, missing), True
        return _finish(filled, started, missing), bool(missing)
    if TORCH_COMPILE in job.against:
        report.stage("loading torch.compile", patience_s=job.compile_s)
        import_torch_compile()
    uuid = environment().gpu_uuid
    peak_rates = get_peak_rates(environment(), report)
    with (
        gpu_lock(uuid, exclusive=True, purpose=f"timing {job.op.name}", on_wait=report.waiting),
        compile_cache(job.versions),
    ):
        report.stage("calibrating the timer", patience_s=60)
        if settings.restore():
            base = base.evolve(badges=(Badge.of(BadgeCode.CHANGED_SETTINGS),))
        filled = base.evolve(**measure(job, op, versions, report, peak_rates=peak_rates))
        filled = filled.evolve(badges=(*base.badges, *filled.badges))
    if replaced := names.restore():
        return _finish(_void(base, replaced), started, missing), True
    spoiled = filled.status is not Status.PASSED or job.census or bool(missing)
    return _finish(filled, started, missing), spoiled


def _check_request(job: BenchJob, op: operators.Op) -> None:
    """Check that the op can be timed so.

    Raises:
        UserFault: it does not declare the dtype, or a graph can't restore what it changes.
    """
    if job.op.inputs and job.dtype not in op.dtypes:
        raise UserFault(
            f"--inputs {job.op.inputs.name}: {op.dtypes[0]} tensors; time them with "
            f"--dtype {op.dtypes[0]}"
        )
    if job.dtype not in op.dtypes:
        raise UserFault(f"{op.name} has no dtype {job.dtype!r}; it declares {', '.join(op.dtypes)}")
    if job.backward_only:
        _check_backward(job, op)
    if op.mutates and job.timer == "graph":
        raise UserFault(
            f"{op.name} changes its inputs (MUTATES), and the calls in a CUDA graph can't restore "
            "them; time it without --timer graph"
        )


def _check_backward(job: BenchJob, op: operators.Op) -> None:
    if not isinstance(op, operators.BackwardOp):
        raise UserFault(
            f"{op.name} has no backward pass of its own; time {op.name}_backward --backward-only"
        )
    if job.timer == "graph":
        raise UserFault(
            "--backward-only: the calls in a CUDA graph follow each other, with no forward pass "
            "between them; time it without --timer graph"
        )


def _void(base: Benchmark, replaced: tuple[str, ...]) -> Benchmark:
    """Return a failed benchmark: what was replaced may have changed the times."""
    return base.evolve(message=f"a version replaced {', '.join(replaced[:3])}: no time is valid")


def _load_versions(job: BenchJob) -> tuple[tuple[LoadedVersion, ...], tuple[NotTimed, ...]]:
    """Load the versions; return them, and the reasons of those that can't be imported."""
    loaded: list[LoadedVersion] = []
    missing: list[NotTimed] = []
    for ref in job.versions:
        try:
            loaded.append(load_version(ref))
        except LoadError as error:
            reason = f"can't be imported: {one_line_error(make_kernel_error(error, ref))}"
            missing += [NotTimed(size=s, provider=ref.version, reason=reason) for s in job.sizes]
    return tuple(loaded), tuple(missing)


def check_sizes(op: operators.Op, sizes: Sequence[str], dtype: str, seed: int) -> None:
    """Check that the op accepts every custom shape.

    Raises:
        UserFault: the op makes no inputs of a shape.
    """
    for size in sizes:
        case = timing_case(op, size, dtype, seed)
        if size in op.sizes:
            continue
        try:
            make_meta(op, case)
        except Exception as error:
            known_sizes = ", ".join(f"{name} {shape_text(s)}" for name, s in op.sizes.items())
            raise UserFault(
                f"{op.name} makes no inputs of shape {size} ({error}); its sizes: {known_sizes}"
            ) from error


def _finish(benchmark: Benchmark, started: float, missing: tuple[NotTimed, ...] = ()) -> Benchmark:
    duration_s = time.monotonic() - started
    not_timed = (*benchmark.not_timed, *missing)
    return benchmark.evolve(duration_s=duration_s, not_timed=not_timed)


def _empty_benchmark(job: BenchJob, op: operators.Op) -> Benchmark:
    return Benchmark(
        op=job.op.name,
        status=Status.FAILED,
        versions=tuple(v.version for v in job.versions),
        sha256s=tuple(v.sha256 for v in job.versions),
        providers=("torch", *(v.version for v in job.versions), *job.against),
        sizes=job.sizes,
        op_sizes=job.op_sizes or tuple(op.sizes),
        runs=job.runs,
        dtype=job.dtype,
        against=job.baselines,
        cold=job.cold,
        backward_only=job.backward_only,
        clock=environment().device_kind,
        environment=environment(),
        seed=job.seed,
    )


# ------------------------------------------------------------------------------------ on a GPU


def measure(
    job: BenchJob,
    op: operators.Op,
    versions: tuple[LoadedVersion, ...],
    report: Reporter,
    *,
    peak_rates: PeakRates | None,
) -> dict[str, Any]:
    """Time all providers on the GPU.

    Args:
        job: the benchmark.
        op: its op.
        versions: the loaded versions.
        report: takes progress and timings.
        peak_rates: of this GPU; None if unknown or during a warm-up.

    Returns:
        The fields of the benchmark that depend on the measurement.
    """
    timer = calibrate_timer(job, job.timer, peak_rates)
    session = TimingSession(
        job=job,
        op=op,
        providers=make_providers(job, op, versions),
        timer=timer,
        report=report,
        deadline=time.monotonic() + job.budget_s,
        make_fallback_timer=lambda: calibrate_timer(job, "gated", peak_rates),
    )
    tiny_kernel_us = _cached_kernel_us(job, peak_rates)
    update: dict[str, Any] = {
        "clock": timer.base.clock,
        "floor_us": timer.floor_us,
        "tick_us": timer.tick_us,
        "timer_us": timer.added_us,
        "empty_kernel_us": tiny_kernel_us.get("empty") if job.timer == "gated" else None,
        "copy_gbps": peak_rates.copy_gbps if peak_rates else None,
        "matmul_tflops": peak_rates.matmul_tflops if peak_rates else {},
        "ceilings_measured": peak_rates.measured if peak_rates else None,
        "badges": () if tiny_kernel_us or job.timer != "gated" else (RAW_TIMES,),
    }
    library, uuid = gpu_conditions.load_nvml(), environment().gpu_uuid
    before = gpu_conditions.read(library, uuid)
    with torch.no_grad(), no_garbage_collection():
        update |= time_all_sizes(session)
        if job.census:
            update["census"] = take_censuses(session)
    settings = tuple(
        Badge.of(BadgeCode.CHANGED_SETTINGS, provider=name)
        for name in sorted(session.changed_settings)
    )
    badges, notes = gpu_conditions.describe_conditions(before, gpu_conditions.read(library, uuid))
    badges = (*update["badges"], *settings, *badges)
    return {**update, "badges": badges, "conditions": (*update["conditions"], *notes)}


def _cached_kernel_us(job: BenchJob, peak_rates: PeakRates | None) -> dict[str, float]:
    """Return the tiny kernels' times by CUPTI with cold or hot caches, as the job times."""
    if peak_rates is None:
        return {}
    return peak_rates.cold if job.cold else peak_rates.hot


def calibrate_timer(job: BenchJob, name: str, peak_rates: PeakRates | None) -> CalibratedTimer:
    """Return a timer calibrated in this process; its times are net if the peak rates are known.

    The timer's overhead is constant in a process. It is calibrated once, so that all benchmarks of
    a process subtract the same figure.
    """
    timer = TIMERS[name](environment().l2_bytes or 64 * 2**20, cold=job.cold)
    tiny_kernel_us = _cached_kernel_us(job, peak_rates) if name == "gated" else {}
    calibration = _CALIBRATIONS.get((name, job.cold)) or timer.calibrate(tiny_kernel_us)
    if peak_rates:  # during a warm-up other processes may use the GPU
        _CALIBRATIONS[name, job.cold] = calibration
    return CalibratedTimer(timer, calibration.added_us, calibration.tick_us, calibration.floor_us)


def take_censuses(session: TimingSession, profile: Profile = profile_kernels) -> tuple[Census, ...]:
    """Return the kernels of each provider's call at the largest size, without the control."""
    size = session.job.sizes[-1]
    session.report.stage("counting kernels", patience_s=60)
    case = timing_case(session.op, size, session.job.dtype, session.job.seed)
    inputs = make_pristine(session.op, case, this_device())
    counted = []
    for provider in session.providers[:-1]:
        try:
            act = partial(provider.call, *inputs)
            counted.append(
                take_census(provider.name, size, act, runtime=provider.runtime, profile=profile)
            )
        except BaseException as error:  # noqa: BLE001 (it has no time at this size either)
            counted.append(
                Census(provider=provider.name, size=size, note=failure_reason(provider, error))
            )
    return tuple(counted)


__all__ = ["measure", "run"]
