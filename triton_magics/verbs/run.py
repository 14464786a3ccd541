"""Call a version on one input."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from triton_magics.execution.job_requests import RunJob
from triton_magics.model import RunResult, shape_text
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import MAX_SEED
from triton_magics.session.input_file import is_input_file
from triton_magics.verbs._arguments import read_shape
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Dtype, Op, Shape, Size, Timeout, Version


class RunRequest(Request):
    """A version, and the input that it is called on."""

    op: Op
    version: Version
    size: Size = None
    shape: Annotated[
        Shape | None, option("in place of a size: 257x1023", metavar="NxM", read=read_shape)
    ] = None
    dtype: Dtype = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED), option("of the inputs", metavar="N")] = 0
    inputs: Annotated[
        str | None,
        option(
            "in place of these: a file of the workspace (x.safetensors, .npz, .npy, .pt), or "
            "Python with torch and device in it",
            metavar="EXPR",
        ),
    ] = None
    timeout: Timeout = None


def run(session: Session, request: RunRequest) -> RunResult:
    """Call a version twice on one input: its output, its prints, and the host's wait.

    Raises:
        UnknownVersion: no such version.
    """
    source = session.source(request.op, request.version)
    dtype = request.dtype or session.default_dtype(source.op)
    size = session.choose_size(source.op, request.size)
    session.gate("run", source.op)
    file = request.inputs if is_input_file(request.inputs or "") else None
    job = RunJob(
        op=session.jobs.op_ref(source.op, file),
        version=session.jobs.version_ref(source),
        size=None if file else size,
        shape=None if file else request.shape,
        dtype=dtype,
        seed=request.seed,
        inputs=None if file else request.inputs,
        compile_s=session.settings.compile_s,
    )
    limits = session.jobs.limits(request.timeout)
    outcome = session.jobs.manager.run(job, key=source.sha256, limits=limits)
    result = outcomes.run_result(outcome, job, _input_text(job))
    session.record(source.op, "ran", result, source=source)
    return session.finish(result)


def _input_text(job: RunJob) -> str:
    if text := job.inputs or (job.op.inputs and job.op.inputs.name):
        return text
    size = shape_text(job.shape) if job.shape else job.size
    return f"{size} {job.dtype}"


VERB = Verb(
    name="run",
    request=RunRequest,
    run=run,
    help="Calls a version twice and shows its output, its prints and how long the host waits.",
    example="%triton_run softmax v1 --inputs '(torch.eye(3, device=device),)'",
    rank=30,
    judges=True,
)
