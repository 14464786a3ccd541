"""Timing in an interpreter on the CPU: gives the cost of a run, and ranks nothing."""

from __future__ import annotations

import time
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import all_outputs, outputs_of
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.skip_rules import unsupported_reason
from triton_magics.harness.load import LoadedVersion, UserFault, make_kernel_error, one_line_error
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.model import (
    CUSTOM_SIZE,
    Badge,
    BadgeCode,
    BadgeParameter,
    Benchmark,
    NotTimed,
    Status,
    Timing,
    shape_text,
)

ESTIMATE_MARGIN = 1.5


def run(
    job: BenchJob,
    op: operators.Op,
    versions: tuple[LoadedVersion, ...],
    base: Benchmark,
    report: Reporter,
) -> Benchmark:
    """Time the versions within the budget, without torch."""
    for version in versions:
        if refused := version.runtime.refused_on_cpu(job.dtype):
            raise UserFault(f"{refused}; use float32")
    deadline = time.monotonic() + job.budget_s
    timings: list[Timing] = []
    missing: list[NotTimed] = []
    costs: dict[str, float] = {}
    for i, size in enumerate(job.sizes):
        left = deadline - time.monotonic()
        share = left / (len(job.sizes) - i) / max(len(versions), 1)
        for version in versions:
            step = f"timing {version.name} at {size}"
            report.stage(step, i, len(job.sizes), patience_s=max(20, 2 * share))
            outcome = _time_version(op, version, size, job, costs=costs, share_s=share)
            if isinstance(outcome, str):
                culprit = NotTimed(size=size, provider=version.name, reason=outcome)
                void = {"message": outcome, "timings": tuple(timings), "not_timed": (culprit,)}
                return base.evolve(**void)
            if isinstance(outcome, Timing):
                timings.append(outcome)
                report.timing(outcome)
            else:
                missing.append(outcome)
    few = any(len(t.samples_us) < job.runs for t in timings)
    return base.evolve(
        status=Status.PASSED if timings else Status.FAILED,
        providers=base.versions,
        timings=tuple(timings),
        not_timed=(*missing, *_untimed_baselines(job)),
        badges=(
            Badge.of(BadgeCode.INTERPRETER),
            *((Badge.of(BadgeCode.FEW_RUNS, runs=job.runs),) if few else ()),
            *_unsupported_options(job),
        ),
    )


def _unsupported_options(job: BenchJob) -> tuple[Badge, ...]:
    """Return a badge for each requested option that needs a GPU."""
    requested: dict[str, BadgeParameter] = {
        "timer": job.timer != "gated" and job.timer,
        "hot": not job.cold,
        "census": job.census,
    }
    return tuple(
        Badge.of(BadgeCode.NEEDS_GPU, parameter=name, value=value)
        for name, value in requested.items()
        if value
    )


def _untimed_baselines(job: BenchJob) -> list[NotTimed]:
    """Return an entry for each baseline of `--against` that is not a version."""
    reason = "only a GPU's times are compared"
    return [
        NotTimed(size=s, provider=name, reason=reason) for s in job.sizes for name in job.against
    ]


def _time_version(
    op: operators.Op,
    version: LoadedVersion,
    size: str,
    job: BenchJob,
    *,
    costs: dict[str, float],
    share_s: float,
) -> Timing | NotTimed | str:
    """Time a version at one size.

    Returns:
        The timing, the reason for a missing time, or the error of a wrong output.
    """
    case = timing_case(op, size, job.dtype, job.seed)
    reason = unsupported_reason(op, case, this_device(), job.dtype, version.runtime)
    if case.size == CUSTOM_SIZE and reason:
        return NotTimed(size=size, provider=version.name, reason=reason)
    if share_s <= 0 and version.name not in costs:
        reason = f"no time is left for it in --budget {job.budget_s:g}"
        return NotTimed(size=size, provider=version.name, reason=reason)
    inputs = make_pristine(op, case, this_device())
    try:
        programs = _count_programs(version, oracle.own_inputs(op, inputs))
        estimate = costs.get(version.name, 0.0) * programs * ESTIMATE_MARGIN
        if estimate > share_s:
            return NotTimed(
                size=size,
                provider=version.name,
                reason=f"one run of {shape_text(case.shape)} would take too long for "
                f"--budget {job.budget_s:g}",
                estimate_s=estimate,
            )
        samples, outputs = _time_runs(version, op, inputs, runs=job.runs, share_s=share_s)
    except BaseException as error:  # noqa: BLE001 (a version can raise anything)
        reason = one_line_error(make_kernel_error(error, version.ref, version.module))
        return NotTimed(size=size, provider=version.name, reason=reason)
    costs[version.name] = min(samples) / max(programs, 1) / 1e6
    if wrong := _check_output(op, inputs, outputs, case):
        return f"{version.name} gave a wrong answer in a timed run at {size}: {wrong}"
    flops = int(op.flops(*inputs)) if op.flops else None
    return Timing(
        provider=version.name,
        size=size,
        shape=case.shape,
        clock="interpreter",
        samples_us=tuple(samples),
        flops=flops,
    )


def _count_programs(version: LoadedVersion, inputs: tuple[Any, ...]) -> int:
    """Count the programs of one call without running them; 1 if the wrapper needs results."""
    observing = version.runtime.observe_launches(suppress=True)
    with torch.no_grad(), fake_gpu(this_device()), observing as launches:
        try:
            version.call(*inputs)
        except (RuntimeError, ValueError, TypeError, IndexError):
            return max(launches.programs, 1)
    return max(launches.programs, 1)


def _time_runs(
    version: LoadedVersion,
    op: operators.Op,
    inputs: tuple[Any, ...],
    *,
    runs: int,
    share_s: float,
) -> tuple[list[float], Any]:
    """Return microseconds of the calls that fit the share, at least one; and the last output.

    Each call gets the same contents, also of the inputs that it changes.
    """
    start_s = time.monotonic()
    samples: list[float] = []
    value = None
    with torch.no_grad(), fake_gpu(this_device()):
        while len(samples) < runs:
            arguments = oracle.own_inputs(op, inputs)
            start = time.perf_counter()
            value = version.call(*arguments)
            samples.append(1e6 * (time.perf_counter() - start))
            if time.monotonic() - start_s + samples[-1] / 1e6 > share_s:
                break
    return samples, all_outputs(value, arguments, op.mutates) if op.mutates else value


def _check_output(op: operators.Op, inputs: tuple[Any, ...], value: Any, case: Any) -> str | None:
    if op.check is not None:
        return op.check(inputs, value, None)
    share = 0.0
    for expected in oracle.iter_expected(op, inputs, case):
        judged = expected.judge_outputs(outputs_of(value))
        if all(j.is_correct for j in judged):
            return None
        share = max(j.error_share for j in judged)
    return f"{share:.3g} times the allowed error"
