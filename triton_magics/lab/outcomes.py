"""What the engine says of a job becomes the value that everyone passes on."""

from __future__ import annotations

import linecache
import re
from typing import Any, TypeVar

from pydantic import BaseModel

from triton_magics.engine import Outcome
from triton_magics.engine.protocol import (
    BenchJob,
    CompileJob,
    OpDescription,
    RunJob,
    SweepJob,
    ValidateJob,
    VersionRef,
    WorkerFault,
)
from triton_magics.errors import UserError, WorkerError
from triton_magics.model import (
    Benchmark,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    Plan,
    Replay,
    RunResult,
    SelfTest,
    Status,
    Sweep,
    Validation,
    settings_text,
    shape_of,
)

_STATUS = {
    "timeout": Status.TIMEOUT,
    "crashed": Status.CRASHED,
    "protocol": Status.CRASHED,
    "interrupted": Status.INTERRUPTED,
    "out_of_memory": Status.OUT_OF_MEMORY,
}
_CASE_STATUS = {
    Status.TIMEOUT: CaseStatus.TIMEOUT,
    Status.CRASHED: CaseStatus.CRASHED,
    Status.INTERRUPTED: CaseStatus.INTERRUPTED,
    Status.OUT_OF_MEMORY: CaseStatus.OUT_OF_MEMORY,
}
LIKELY_OUT_OF_MEMORY = "SIGKILL"
# As faulthandler writes it, of each thread.
_STACK = re.compile(r"hread .*\(most recent call first\):\n((?: +File .+\n?)+)")
_WAITS = re.compile(r' +File ".*/torch/cuda/.+", line \d+ in synchronize\b')
_FRAME = re.compile(r'^ +File "(.+)", line (\d+) in ', re.MULTILINE)
Told = TypeVar("Told", bound=BaseModel)


def _answered(outcome: Outcome, kind: type[Told]) -> Told | None:
    """The worker's answer with what was printed meanwhile; None where there is none of that kind.

    Raises:
        UserError: what is wrong is not the version, and the user can mend it.
        WorkerError: our own process failed.
    """
    answer = outcome.answer
    if isinstance(answer, WorkerFault):
        if answer.user:
            raise UserError(answer.message)
        raise WorkerError(f"{answer.message}\n{answer.traceback}".rstrip())
    if not isinstance(answer, kind):
        return None
    printed = {"output": outcome.output} if "output" in kind.model_fields else {}
    return answer.model_copy(update=printed)


def _ending(outcome: Outcome, *refs: VersionRef) -> dict[str, Any]:
    """What every result says of a process that was lost, and in which line of these versions."""
    return {
        "status": _STATUS[outcome.status],
        "environment": outcome.environment,
        "message": _message(outcome, *refs),
        "output": outcome.output,
    }


def _message(outcome: Outcome, *refs: VersionRef) -> str:
    hint = " (out of memory?)" if outcome.exit == LIKELY_OUT_OF_MEMORY else ""
    return outcome.detail + hint + _at(outcome, refs)


def _at(outcome: Outcome, refs: tuple[VersionRef, ...]) -> str:
    """`, at cell line 7 (kernels/relu/v2_tiling.py:9): while v == v:`; empty where nobody knows."""
    stacks = _STACK.findall(outcome.stack or outcome.output)  # a crash by signal prints its own
    for file, number in _FRAME.findall("".join(stacks)):
        for ref in refs:
            if file == ref.path:
                return f", at {_place(ref, int(number))}"
    if any(map(_WAITS.match, stacks)):
        return ": a kernel on the GPU did not end"
    on_gpu = outcome.environment is not None and outcome.environment.device_kind == "gpu"
    mute = outcome.status == "timeout" and on_gpu and not outcome.stack
    return "; it could not say where: it hangs in the GPU's driver, or was stopped" if mute else ""


def _place(ref: VersionRef, number: int) -> str:
    cell_line = number - ref.header_lines + ref.cell_offset
    linecache.checkcache(ref.path)
    code = linecache.getline(ref.path, number).strip()
    return f"cell line {cell_line} ({ref.shown_path}:{number})" + (f": {code}" if code else "")


def validation(outcome: Outcome, job: ValidateJob) -> Validation:
    """The validation, or what is known of it where its process was lost.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of the version.
    """
    if told := _answered(outcome, Validation):
        return told
    status = _STATUS[outcome.status]
    return Validation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        plan=job.plan,
        seed=job.seed,
        dtypes=job.dtypes or tuple(dict.fromkeys(c.case.dtype for c in outcome.planned)),
        cases=_cases(outcome, status, job.version),
        **_ending(outcome, job.version),
        duration_s=outcome.wall_s,
    )


def _cases(outcome: Outcome, status: Status, ref: VersionRef) -> tuple[CaseResult, ...]:
    """Every planned case: those that ended, the one it was in, and the rest as not run."""
    done = {c.case: c for c in outcome.cases}
    results, found = [], False
    for planned in outcome.planned:
        if planned.case in done:
            results.append(done[planned.case])
        elif not found and outcome.stage == f"validating {planned.case.label}":
            found = True
            reason = outcome.detail + _at(outcome, (ref,))
            results.append(
                CaseResult(case=planned.case, status=_CASE_STATUS[status], reason=reason)
            )
        else:
            reason = f"not reached: {outcome.status} at {outcome.stage}"
            results.append(CaseResult(case=planned.case, status=CaseStatus.NOT_RUN, reason=reason))
    return tuple(results)


def benchmark(outcome: Outcome, job: BenchJob) -> Benchmark:
    """The benchmark, or the timings that were made before its process was lost.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of a version.
    """
    if told := _answered(outcome, Benchmark):
        return told
    kind = outcome.environment.device_kind if outcome.environment else None
    versions = tuple(v.version for v in job.versions)
    timed = ("torch", *versions, *job.against)
    timings = tuple(t for t in outcome.timings if t.provider in timed)
    return Benchmark(
        op=job.op.name,
        versions=versions,
        sha256s=tuple(v.sha256 for v in job.versions),
        providers=versions if kind == "interpreter" else ("torch", *versions, *job.against),
        sizes=job.sizes,
        runs=job.runs,
        dtype=job.dtype,
        against=job.rivals,
        cold=job.cold,
        clock=timings[0].clock if timings else kind,
        timings=timings,
        seed=job.seed,
        **_ending(outcome, *job.versions),
        duration_s=outcome.wall_s,
    )


def sweep(outcome: Outcome, job: SweepJob) -> Sweep:
    """The sweep, or the configurations that were checked before its process was lost.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of the version.
    """
    if told := _answered(outcome, Sweep):
        return told
    status = _STATUS[outcome.status]
    names = dict.fromkeys(name for point in job.points for name in point.settings)
    return Sweep(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        knobs={n: tuple(dict.fromkeys(p.settings[n] for p in job.points)) for n in names},
        size=job.size,
        shape=shape_of(job.size) or (),
        dtype=job.dtype,
        cold=job.cold,
        target=f"sm_{job.target}" if job.target else None,
        configurations=_configurations(outcome, job, status),
        seed=job.seed,
        **_ending(outcome),
        duration_s=outcome.wall_s,
    )


def selftest(outcome: Outcome) -> SelfTest:
    """The self-test, or how it ended.

    Raises:
        UserError, WorkerError: it could not be done.
    """
    if told := _answered(outcome, SelfTest):
        return told
    return SelfTest(
        **_ending(outcome),
        duration_s=outcome.wall_s,
    )


def _configurations(outcome: Outcome, job: SweepJob, status: Status) -> tuple[Configuration, ...]:
    """Every point: those that were checked, the one it was at, and the rest as not reached."""
    done = {c.label: c for c in outcome.configurations}
    made = []
    for point in job.points:
        label = settings_text(point.settings)
        if label in done:
            made.append(done[label])
        elif outcome.stage == f"checking {label}" and status in _CASE_STATUS:
            made.append(Configuration(
                settings=point.settings, status=_CASE_STATUS[status], reason=outcome.detail
            ))  # fmt: skip
        else:
            reason = f"not reached: {outcome.status} at {outcome.stage}"
            made.append(Configuration(
                settings=point.settings, status=CaseStatus.NOT_RUN, reason=reason
            ))  # fmt: skip
    return tuple(made)


def run_result(outcome: Outcome, job: RunJob, inputs: str) -> RunResult:
    """The run, or how it ended.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of the version.
    """
    if told := _answered(outcome, RunResult):
        return told
    return RunResult(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        inputs=inputs,
        **_ending(outcome, job.version),
    )


def compilation(outcome: Outcome, job: CompileJob) -> Compilation:
    """The compilation, or how it ended.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of the version.
    """
    if told := _answered(outcome, Compilation):
        return told
    return Compilation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=_STATUS[outcome.status],
        target=f"sm_{job.target}",
        here=job.here,
        duration_s=outcome.wall_s,
        note=_message(outcome, job.version),
    )


def plan(outcome: Outcome, op: str) -> Plan:
    """What a validation would run.

    Raises:
        UserError: the op's file can't be used.
        WorkerError: our own process failed.
    """
    if told := _answered(outcome, Plan):
        return told
    raise UserError(f"{op}: its plan could not be made: {_message(outcome)}")


def replay(outcome: Outcome) -> Replay | None:
    """What the interpreter saw; None where it did not come to an answer, interrupted or not."""
    return outcome.answer if isinstance(outcome.answer, Replay) else None


def description(outcome: Outcome, op: str) -> OpDescription:
    """What the user's own op declares.

    Raises:
        UserError: its reference can't be used, crashed or did not end.
        WorkerError: our own process failed.
    """
    if told := _answered(outcome, OpDescription):
        return told
    raise UserError(f"{op}: its reference could not be tried out: {_message(outcome)}")
