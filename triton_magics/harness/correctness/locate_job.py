"""Locate job: run a case that failed on a GPU in the interpreter, to find the line at fault."""

from __future__ import annotations

import torch

from triton_magics import exception_text
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import ReplayJob
from triton_magics.harness.correctness.case_inputs import make_inputs
from triton_magics.harness.correctness.guard_bands import guard_allocations
from triton_magics.harness.job_sources import version_path
from triton_magics.harness.load import LoadError, error_at_line, load_op, load_version
from triton_magics.harness.process.device import CPU
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.reporter import Reporter
from triton_magics.languages.kernel_runtime import KernelRuntime
from triton_magics.model import RACE, Replay

MAX_PROGRAMS = 5000  # some seconds


def run(job: ReplayJob, report: Reporter) -> tuple[Answer, bool]:
    """Find the first access outside a tensor, or else a race; the values are not checked."""
    report.stage(f"looking for the line in the interpreter, {job.case.label}", patience_s=30)
    op = load_op(job.op)
    try:
        with fake_gpu(CPU):
            version = load_version(job.version)
    except LoadError as error:
        return Replay(case=job.case, note=f"the interpreter can't import it: {error}"), True
    runtime = version.runtime
    inputs, path = make_inputs(op, job.case, CPU), str(version_path(job.version))
    with (
        torch.no_grad(),
        guard_allocations() as memory,
        runtime.check_bounds(path, lambda: (*inputs.guards, *memory.guarded)) as bounds,
        fake_gpu(CPU),
    ):
        note = _call(runtime, version.call, inputs.arguments)
    fault = bounds.outside or bounds.race
    if fault is None:
        nothing = "no access outside a tensor was found, and no race"
        return Replay(case=job.case, note=note or nothing), True
    kind = "OutOfBounds" if bounds.outside else RACE
    located = error_at_line(kind, fault.message, fault.line, job.version)
    return Replay(case=job.case, error=located), True


def _call(runtime: KernelRuntime, call: object, arguments: tuple[object, ...]) -> str | None:
    """Run the version; return why it could not finish in the interpreter, None if it did."""
    try:
        with runtime.observe_launches(suppress=True) as launches:
            call(*arguments)  # type: ignore[operator]
        if launches.programs > MAX_PROGRAMS:
            return f"{launches.programs} programs are too many for the interpreter"
        call(*arguments)  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 (what the version raises; the bounds were launches)
        return exception_text.one_line(error)
    return None
