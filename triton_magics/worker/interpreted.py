"""Timing in Triton's interpreter: says what a run costs here, ranks nothing."""

from __future__ import annotations

import time
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import BenchJob
from triton_magics.model import Benchmark, NotTimed, Status, Timing, shape_text
from triton_magics.worker import oracle
from triton_magics.worker.cases import OWN, make_pristine
from triton_magics.worker.launches import watching
from triton_magics.worker.load import Loaded, UserFault, explain, in_short
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import this_device
from triton_magics.worker.skips import never_here
from triton_magics.worker.slots import case_of

CAUTION = 1.5


def run(
    job: BenchJob, op: ops.Op, versions: tuple[Loaded, ...], base: Benchmark, report: Reporter
) -> Benchmark:
    """As many runs as fit the budget, at the sizes that fit it; no torch beside them."""
    if job.dtype == "bfloat16":
        raise UserFault(
            "Triton's interpreter computes bfloat16 wrongly without a word; use float32"
        )
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
            made = _one(op, version, size, job, costs=costs, share_s=share)
            if isinstance(made, str):
                culprit = NotTimed(size=size, provider=version.name, reason=made)
                void = {"message": made, "timings": tuple(timings), "not_timed": (culprit,)}
                return base.model_copy(update=void)
            if isinstance(made, Timing):
                timings.append(made)
                report.timing(made)
            else:
                missing.append(made)
    few = tuple({f"fewer than {job.runs} runs" for t in timings if len(t.samples_us) < job.runs})
    return base.model_copy(
        update={
            "status": Status.PASSED if timings else Status.FAILED,
            "providers": base.versions,
            "timings": tuple(timings),
            "not_timed": (*missing, *_rivals(job)),
            "badges": ("interpreter", *few, *_left_out(job)),
        }
    )


def _left_out(job: BenchJob) -> list[str]:
    """What was asked for and needs a GPU."""
    asked = {
        f"--timer {job.timer}": job.timer != "gated",
        "--hot": not job.cold,
        "--census": job.census,
    }
    return [f"{option} needs a GPU" for option, wanted in asked.items() if wanted]


def _rivals(job: BenchJob) -> list[NotTimed]:
    """Whom `--against` names beside the versions: not timed here."""
    reason = "only a GPU's times are compared"
    return [
        NotTimed(size=s, provider=name, reason=reason) for s in job.sizes for name in job.against
    ]


def _one(
    op: ops.Op,
    version: Loaded,
    size: str,
    job: BenchJob,
    *,
    costs: dict[str, float],
    share_s: float,
) -> Timing | NotTimed | str:
    """A version at a size: its timing, why there is none, or what was wrong with its output."""
    case = case_of(op, size, job.dtype, job.seed)
    if case.size == OWN and (never := never_here(case, this_device(), job.dtype)):
        return NotTimed(size=size, provider=version.name, reason=never)
    if share_s <= 0 and version.name not in costs:
        reason = f"no time is left for it in --budget {job.budget_s:g}"
        return NotTimed(size=size, provider=version.name, reason=reason)
    given = make_pristine(op, case, this_device())
    try:
        programs = _programs(version, given)
        estimate = costs.get(version.name, 0.0) * programs * CAUTION
        if estimate > share_s:
            return NotTimed(
                size=size,
                provider=version.name,
                reason=f"one run of {shape_text(case.shape)} would take too long for "
                f"--budget {job.budget_s:g}",
                estimate_s=estimate,
            )
        samples, value = _runs(version, given, job.runs, share_s)
    except BaseException as error:  # noqa: BLE001 (whatever the version raises: it has no time here)
        reason = in_short(explain(error, version.ref, version.module))
        return NotTimed(size=size, provider=version.name, reason=reason)
    costs[version.name] = min(samples) / max(programs, 1) / 1e6
    if wrong := _wrong(op, given, value, case):
        return f"{version.name} gave a wrong answer in a timed run at {size}: {wrong}"
    flops = int(op.flops(*given)) if op.flops else None
    return Timing(
        provider=version.name,
        size=size,
        shape=case.shape,
        clock="interpreter",
        samples_us=tuple(samples),
        flops=flops,
    )


def _programs(version: Loaded, given: tuple[Any, ...]) -> int:
    """Program instances of one call, without running them; 1 where the wrapper needs results."""
    with torch.no_grad(), pretending(this_device()), watching(suppress=True) as seen:
        try:
            version.call(*given)
        except (RuntimeError, ValueError, TypeError, IndexError):
            return max(seen.programs, 1)
    return max(seen.programs, 1)


def _runs(
    version: Loaded, given: tuple[Any, ...], runs: int, share_s: float
) -> tuple[list[float], Any]:
    """Microseconds of as many calls as fit the share, at least one; and the last output."""
    begun = time.monotonic()
    samples: list[float] = []
    value = None
    with torch.no_grad(), pretending(this_device()):
        while len(samples) < runs:
            start = time.perf_counter()
            value = version.call(*given)
            samples.append(1e6 * (time.perf_counter() - start))
            if time.monotonic() - begun + samples[-1] / 1e6 > share_s:
                break
    return samples, value


def _wrong(op: ops.Op, given: tuple[Any, ...], value: Any, case: Any) -> str | None:
    if op.check is not None:
        return op.check(given, value, None)
    share = 0.0
    for expected in oracle.plain_first(op, given, case):
        judged = expected.judged(oracle.outputs_of(value))
        if all(j.right for j in judged):
            return None
        share = max(j.error_share for j in judged)
    return f"{share:.3g} times the error that is allowed"
