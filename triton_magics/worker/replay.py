"""A case that failed on a GPU, in the interpreter: which line reads or writes outside?"""

from __future__ import annotations

import torch

from triton_magics.engine.protocol import Answer, ReplayJob
from triton_magics.model import Replay
from triton_magics.worker.bounds import checking_bounds
from triton_magics.worker.cases import make_inputs
from triton_magics.worker.guard import guarding
from triton_magics.worker.launches import watching
from triton_magics.worker.load import LoadError, at_line, load_op, load_version
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter

CPU = torch.device("cpu")
MOST_PROGRAMS = 5000  # some seconds


def run(job: ReplayJob, report: Reporter) -> tuple[Answer, bool]:
    """The first access outside a tensor; the values are not looked at."""
    report.stage(f"looking for the line in the interpreter, {job.case.label}", patience_s=30)
    op = load_op(job.op)
    try:
        with pretending(CPU):
            version = load_version(job.version)
    except LoadError as error:
        return Replay(case=job.case, note=f"it can't be imported there: {error}"), True
    inputs = make_inputs(op, job.case, CPU)
    with (
        torch.no_grad(),
        guarding() as memory,
        checking_bounds(job.version.path, lambda: (*inputs.guards, *memory.guarded)) as bounds,
        pretending(CPU),
    ):
        note = _call(version.call, inputs.given)
    found = bounds.first
    if found is None:
        return Replay(case=job.case, note=note or "every access was inside its tensor"), True
    told = at_line("OutOfBounds", found.message, found.line, job.version)
    return Replay(case=job.case, error=told), True


def _call(call: object, given: tuple[object, ...]) -> str | None:
    """Runs the version, unless it is too much for the interpreter; what kept it from its end."""
    try:
        with watching(suppress=True) as seen:
            call(*given)  # type: ignore[operator]
        if seen.programs > MOST_PROGRAMS:
            return f"{seen.programs} programs are too many for the interpreter"
        call(*given)  # type: ignore[operator]
    except BaseException as error:  # noqa: BLE001 (what the version raises; the bounds were seen)
        return f"{type(error).__name__}: {error}"
    return None
