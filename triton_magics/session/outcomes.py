"""Turn the outcome of a job into its result: the worker's answer, or how the process was lost."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from triton_magics.errors import ServerLost, UserError, WorkerError
from triton_magics.execution import Outcome
from triton_magics.execution.job_answers import Findings, OpDescription, OpForms, WorkerFault
from triton_magics.execution.job_refs import VersionRef
from triton_magics.execution.job_requests import (
    BenchJob,
    CompileJob,
    JobRequest,
    ProfileJob,
    RunJob,
    SelfTestJob,
    SweepJob,
    ValidateJob,
    VersionJob,
)
from triton_magics.model import (
    Benchmark,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    KernelError,
    Plan,
    Profile,
    Replay,
    RunResult,
    SelfTest,
    Setting,
    Status,
    Sweep,
    Validation,
    Value,
    settings_text,
    shape_of,
    source_lines,
)

_STATUS = {
    "timeout": Status.TIMEOUT,
    "crashed": Status.CRASHED,
    "protocol": Status.CRASHED,
    "interrupted": Status.INTERRUPTED,
    "lost": Status.INTERRUPTED,
    "out_of_memory": Status.OUT_OF_MEMORY,
}
_CASE_STATUS = {
    Status.TIMEOUT: CaseStatus.TIMEOUT,
    Status.CRASHED: CaseStatus.CRASHED,
    Status.INTERRUPTED: CaseStatus.INTERRUPTED,
    Status.OUT_OF_MEMORY: CaseStatus.OUT_OF_MEMORY,
    Status.RUNTIME_ERROR: CaseStatus.RUNTIME_ERROR,
}
LIKELY_OUT_OF_MEMORY = "SIGKILL"
# As faulthandler writes it, of each thread.
_STACK = re.compile(r"hread .*\(most recent call first\):\n((?: +File .+\n?)+)")
_WAITS = re.compile(r' +File ".*/torch/cuda/.+", line \d+ in synchronize\b')
_FRAME = re.compile(r'^ +File "(.+)", line (\d+) in ', re.MULTILINE)
Answered = TypeVar("Answered", bound=Value)


def _answer(outcome: Outcome, kind: type[Answered]) -> Answered | None:
    """Return the worker's answer with the printed text; None if there is none of that kind.

    Raises:
        UserError: the user can fix it, and it is no fault of the version.
        WorkerError: our own process failed.
    """
    answer = outcome.answer
    if isinstance(answer, WorkerFault):
        if answer.version_error:
            return None
        if answer.user:
            raise UserError(answer.message)
        raise WorkerError(f"{answer.message}\n{answer.traceback}".rstrip())
    if not isinstance(answer, kind):
        return None
    printed = {"output": outcome.output} if "output" in kind.model_fields else {}
    return answer.evolve(**printed)


def _result(outcome: Outcome, kind: type[Answered], job: JobRequest, **facts: Any) -> Answered:
    """Return the answer; else a result with the ending, the job's subject and these facts.

    Raises:
        UserError, WorkerError: the job could not be done, through no fault of the version.
    """
    if answer := _answer(outcome, kind):
        return answer
    error = _version_error(outcome)
    message = None if error else _message(outcome, *job.refs)
    fields: dict[str, Any] = {
        **_subject(job),
        "status": _ending_of(outcome),
        "environment": outcome.environment,
        "error": error,
        "message": message,
        "note": message,
        "output": outcome.output,
        "duration_s": outcome.wall_s,
        "lost": outcome.detail if outcome.status == "lost" else None,
        **facts,
    }
    return kind.model_validate({n: v for n, v in fields.items() if n in kind.model_fields})


def _version_error(outcome: Outcome) -> KernelError | None:
    """Return the error of a version that made our own code in its process fail."""
    return outcome.answer.version_error if isinstance(outcome.answer, WorkerFault) else None


def _ending_of(outcome: Outcome) -> Status:
    """Return the status of a lost process; of one that answered something else, `crashed`."""
    if (error := _version_error(outcome)) and error.file_line:
        return Status.RUNTIME_ERROR
    return _STATUS.get(outcome.status, Status.CRASHED)


def _subject(job: JobRequest) -> dict[str, Any]:
    """Return the op and, for a job of one version, the version with its attempt and hash."""
    if not isinstance(job, VersionJob):
        return {"op": job.subject}
    ref = job.version
    return {
        "op": job.subject, "version": ref.version, "attempt": ref.attempt, "sha256": ref.sha256
    }  # fmt: skip


def _message(outcome: Outcome, *refs: VersionRef) -> str:
    hint = " (out of memory?)" if outcome.exit == LIKELY_OUT_OF_MEMORY else ""
    return outcome.detail + hint + _at(outcome, refs)


def _at(outcome: Outcome, refs: tuple[VersionRef, ...]) -> str:
    """Return `, at cell line 7 (kernels/relu/v2_tiling.py:9): while v == v:`; or nothing."""
    stacks = _STACK.findall(outcome.stack or outcome.output)  # a crash by signal prints its own
    for file, number in _FRAME.findall("".join(stacks)):
        for ref in refs:
            if file == ref.shown_path:
                return f", at {_place(ref, int(number))}"
    if any(map(_WAITS.match, stacks)):
        return ": a kernel on the GPU did not end"
    on_gpu = outcome.environment is not None and outcome.environment.device_kind == "gpu"
    mute = outcome.status == "timeout" and on_gpu and not outcome.stack
    return "; line unknown: it hangs in the GPU's driver, or was stopped" if mute else ""


def _place(ref: VersionRef, number: int) -> str:
    lines = source_lines(ref.source)
    code = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    place = f"cell line {ref.cell_line(number)} ({ref.shown_path}:{number})"
    return f"{place}: {code}" if code else place


def check_ended(outcome: Outcome) -> None:
    """Check that a job without partial results has ended by itself.

    Raises:
        KeyboardInterrupt: it was interrupted.
        ServerLost: the machine that ran it was lost.
    """
    if outcome.status == "interrupted":
        raise KeyboardInterrupt
    if outcome.status == "lost":
        raise ServerLost(outcome.detail)


def check_compiled(compilation: Compilation | None) -> None:
    """Check that a compilation beside another result has ended by itself.

    Raises:
        KeyboardInterrupt: it was interrupted.
        ServerLost: the machine that compiled was lost.
    """
    if compilation and compilation.lost:
        raise ServerLost(compilation.lost)
    if compilation and compilation.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def validation(outcome: Outcome, job: ValidateJob) -> Validation:
    """Return the validation; of a lost process with the cases that are known."""
    return _result(
        outcome, Validation, job,
        request=job.request,
        dtypes=job.dtypes or tuple(dict.fromkeys(c.case.dtype for c in outcome.planned)),
        cases=_cases(outcome, job.version),
    )  # fmt: skip


def _cases(outcome: Outcome, ref: VersionRef) -> tuple[CaseResult, ...]:
    """Return every planned case: those that ended, the one under way, the rest as not run."""
    done = {c.case: c for c in outcome.cases}
    results = []
    for planned in outcome.planned:
        if planned.case in done:
            results.append(done[planned.case])
        elif planned.case == outcome.case:
            error = _version_error(outcome)
            reason = None if error else outcome.detail + _at(outcome, (ref,))
            status = _CASE_STATUS.get(_ending_of(outcome), CaseStatus.NOT_RUN)
            results.append(CaseResult(case=planned.case, status=status, reason=reason, error=error))
        else:
            reason = f"not reached: {_ending_of(outcome)} at {outcome.stage}"
            results.append(CaseResult(case=planned.case, status=CaseStatus.NOT_RUN, reason=reason))
    return tuple(results)


def benchmark(outcome: Outcome, job: BenchJob) -> Benchmark:
    """Return the benchmark; of a lost process with the timings that are known."""
    kind = outcome.environment.device_kind if outcome.environment else None
    versions = tuple(v.version for v in job.versions)
    timed = ("torch", *versions, *job.against)
    timings = tuple(t for t in outcome.timings if t.provider in timed)
    return _result(
        outcome, Benchmark, job,
        versions=versions,
        sha256s=tuple(v.sha256 for v in job.versions),
        providers=versions if kind == "interpreter" else timed,
        sizes=job.sizes,
        op_sizes=job.op_sizes,
        runs=job.runs,
        dtype=job.dtype,
        against=job.baselines,
        cold=job.cold,
        backward_only=job.backward_only,
        clock=timings[0].clock if timings else kind,
        timings=timings,
        seed=job.seed,
    )  # fmt: skip


def sweep(outcome: Outcome, job: SweepJob) -> Sweep:
    """Return the sweep; of a lost process with the configurations that are known."""
    status = _ending_of(outcome)
    names = dict.fromkeys(name for point in job.points for name in point.settings)
    return _result(
        outcome, Sweep, job,
        knobs={n: tuple(dict.fromkeys(p.settings[n] for p in job.points)) for n in names},
        size=job.size,
        shape=shape_of(job.size) or (),
        dtype=job.dtype,
        cold=job.cold,
        target=f"sm_{job.target}" if job.target else None,
        configurations=_configurations(outcome, job, status),
        culprit=_culprit(outcome, status),
        seed=job.seed,
    )  # fmt: skip


def selftest(outcome: Outcome, job: SelfTestJob) -> SelfTest:
    """Return the self-test, or how it ended."""
    return _result(outcome, SelfTest, job)


def _culprit(outcome: Outcome, status: Status) -> dict[str, Setting] | None:
    """Return the settings that were tried when the process was lost; None if it was stopped."""
    lost = status is not Status.INTERRUPTED and outcome.settings is not None
    return dict(outcome.settings) if lost and outcome.settings else None


def _configurations(outcome: Outcome, job: SweepJob, status: Status) -> tuple[Configuration, ...]:
    """Return every point: those checked, the one under way, the rest as not reached."""
    done = {c.label: c for c in outcome.configurations}
    results = []
    for point in job.points:
        label = settings_text(point.settings)
        if label in done:
            results.append(done[label])
        elif point.settings == outcome.settings and status in _CASE_STATUS:
            results.append(Configuration(
                settings=point.settings, status=_CASE_STATUS[status], reason=outcome.detail
            ))  # fmt: skip
        else:
            reason = f"not reached: {outcome.status} at {outcome.stage}"
            results.append(Configuration(
                settings=point.settings, status=CaseStatus.NOT_RUN, reason=reason,
                is_reached=False,
            ))  # fmt: skip
    return tuple(results)


def run_result(outcome: Outcome, job: RunJob, inputs: str) -> RunResult:
    """Return the run, or how it ended."""
    return _result(outcome, RunResult, job, inputs=inputs)


def profile(outcome: Outcome, job: ProfileJob) -> Profile:
    """Return the profile, or how it ended."""
    return _result(outcome, Profile, job, case=job.case)


def compilation(outcome: Outcome, job: CompileJob) -> Compilation:
    """Return the compilation, or how it ended."""
    return _result(outcome, Compilation, job, target=f"sm_{job.target}", here=job.here)


def plan(outcome: Outcome, op: str) -> Plan:
    """Return the plan of a validation.

    Raises:
        UserError: the op's file can't be used.
        WorkerError: our own process failed.
    """
    if answer := _answer(outcome, Plan):
        return answer
    raise UserError(f"{op}: its plan could not be made: {_message(outcome)}")


def replay(outcome: Outcome) -> Replay | None:
    """Return the interpreter's finding; None if the job did not finish."""
    return outcome.answer if isinstance(outcome.answer, Replay) else None


def description(outcome: Outcome, op: str) -> OpDescription:
    """Return the declarations of a user's own op.

    Raises:
        UserError: its reference can't be used, crashed or did not end.
        WorkerError: our own process failed.
    """
    if answer := _answer(outcome, OpDescription):
        return answer
    raise UserError(f"{op}: its reference could not be called: {_message(outcome)}")


def findings(outcome: Outcome, op: str) -> Findings:
    """Return what a worker found out about an imported problem.

    Raises:
        UserError: no draft of it works, or its reference crashed or did not end.
        WorkerError: our own process failed.
    """
    if answer := _answer(outcome, Findings):
        return answer
    raise UserError(f"{op}: its reference could not be called: {_message(outcome)}")


def forms(outcome: Outcome, op: str) -> OpForms:
    """Return the inputs and outputs of an op at its sizes.

    Raises:
        UserError: its reference can't be called.
        WorkerError: our own process failed.
    """
    if answer := _answer(outcome, OpForms):
        return answer
    raise UserError(f"{op}: its reference could not be called: {_message(outcome)}")
