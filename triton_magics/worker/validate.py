"""Is this version right? Every case of the plan, every check on it, one verdict."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, ValidateJob
from triton_magics.model import Case, CaseResult, CaseStatus, Sanitized, Status, Validation
from triton_magics.worker import oracle
from triton_magics.worker.again import called_again, races
from triton_magics.worker.cases import Inputs, make_inputs, plan
from triton_magics.worker.checks import fail, left_behind, read_outside, wrong_form
from triton_magics.worker.compare import compared
from triton_magics.worker.conclude import badges, done
from triton_magics.worker.evidence import Evidence
from triton_magics.worker.launches import Launches, tunes_itself, watching
from triton_magics.worker.load import (
    LoadError,
    UserFault,
    compile_cache,
    explain,
    load_op,
    load_version,
    raised_in,
    refused_by_compiler,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.sanitize import sanitized
from triton_magics.worker.skips import Meter, not_run, why_not
from triton_magics.worker.subject import Call, Subject, guarded_call
from triton_magics.worker.turns import Turns

REFUSALS = (ValueError, TypeError, NotImplementedError, AssertionError)
LARGE_ELEMENTS = 2**22  # from here on, what the version got is given back before it is judged
_STICKY = (
    "CUDA error", "illegal memory access", "misaligned address", "device-side assert",
    "unspecified launch failure", "illegal instruction",
)  # fmt: skip


def run(job: ValidateJob, report: Reporter) -> tuple[Answer, bool]:
    """The whole validation; and whether this process must not be used again."""
    started = time.monotonic()
    device = this_device()
    report.environment(environment())
    op = load_op(job.op)
    dtypes = job.dtypes or op.dtypes
    check_dtypes(op, dtypes)
    cases = plan(op, job, dtypes)
    report.planned(tuple(not_run(c, "not reached") for c in cases))
    report.stage("loading")
    base = Validation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        plan=job.plan,
        seed=job.seed,
        dtypes=dtypes,
        environment=environment(),
        badges=badges(job),
    )
    try:
        with pretending(device):
            version = load_version(job.version)
    except LoadError as error:
        failed = explain(error, job.version)
        return done(base, (), started, error=failed, status=Status.RUNTIME_ERROR), True
    body = "".join(
        Path(job.version.path).read_text().splitlines(keepends=True)[job.version.header_lines :]
    )
    subject = Subject(op, version, job, device, body)
    uuid = environment().gpu_uuid
    what = f"validating {job.op.name} {job.version.version}"
    with compile_cache((job.version,)):
        report.stage("compiling", patience_s=job.compile_s)
        lock = partial(gpu_lock, uuid, alone=False, what=what, waiting=report.waiting)
        with Turns.beginning(subject, cases, report, lock) as turns:
            results, evidence, retire = _run_cases(subject, cases, report, turns)
            said = _sanitized(subject, results, report) if job.sanitize else ()
    verdict = done(base, results, started, evidence=evidence)
    return verdict.model_copy(update={"sanitized": said}), retire


def _sanitized(
    subject: Subject, results: tuple[CaseResult, ...], report: Reporter
) -> tuple[Sanitized, ...]:
    """What compute-sanitizer says of the first failed case, or of the first that was run."""
    ran = [r for r in results if r.status is not CaseStatus.NOT_RUN]
    first = next((r for r in ran if r.status.failed), ran[0] if ran else results[0])
    return tuple(sanitized(subject.job, first.case, report, gpu=not subject.interpreted))


def check_dtypes(op: ops.Op, dtypes: tuple[str, ...]) -> None:
    """Every dtype is one of the op's.

    Raises:
        UserFault: one is not.
    """
    unknown = [d for d in dtypes if d not in op.dtypes]
    if unknown:
        raise UserFault(
            f"{op.name} has no dtype {unknown[0]!r}; it declares {', '.join(op.dtypes)}"
        )


def _run_cases(
    subject: Subject, cases: tuple[Case, ...], report: Reporter, turns: Turns
) -> tuple[tuple[CaseResult, ...], Evidence, bool]:
    """Every case's result, what was seen of Triton and torch, whether to retire."""
    results: list[CaseResult] = []
    evidence = Evidence()
    stop: str | None = None
    meter = Meter()
    patience_s = subject.job.compile_s if tunes_itself(subject.version.module) else 0.0
    for i, case in enumerate(turns.ready_first(cases)):
        reason = stop or why_not(subject, case, results, meter)
        if reason:
            results.append(not_run(case, reason))
            continue
        turns.wait_for(case)
        report.stage(f"validating {case.label}", i, len(cases), patience_s=patience_s)
        with meter.measuring(case):
            result, seen = run_case(subject, case)
        evidence.add(seen, case, result)
        results.append(result)
        report.case(result)
        if _sticky(result):
            stop = f"not run: {case.label} left the GPU's context unusable"
    if stop is None:
        evidence.measure(subject)
    in_plan = {case: i for i, case in enumerate(cases)}
    results.sort(key=lambda result: in_plan[result.case])
    return tuple(results), evidence, stop is not None


def _sticky(result: CaseResult) -> bool:
    message = result.error.message if result.error else ""
    return result.status is CaseStatus.RUNTIME_ERROR and any(w in message for w in _STICKY)


# ---------------------------------------------------------------------------------- one case


def run_case(subject: Subject, case: Case) -> tuple[CaseResult, Launches]:
    """One case with all its checks, and what it launched."""
    begun = time.monotonic()
    launches = Launches()
    try:
        inputs = make_inputs(subject.op, case, subject.device)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return not_run(case, "its inputs do not fit the GPU's free memory"), launches
    try:
        with watching() as launches:
            call = guarded_call(subject, inputs, launches)
        result = _judged(subject, case, inputs, call)
    except UserFault:
        raise
    # A KeyboardInterrupt too: here it is the version's own, for a worker ignores the user's.
    except BaseException as error:  # noqa: BLE001 (whatever the version raises is a verdict)
        result = _raised(subject, case, error, launched=bool(launches.names))
    return result.model_copy(update={"duration_s": time.monotonic() - begun}), launches


def _raised(subject: Subject, case: Case, error: BaseException, *, launched: bool) -> CaseResult:
    """The verdict on an exception out of the version's call."""
    told = explain(error, subject.version.ref, subject.version.module)
    refusal = (
        isinstance(error, REFUSALS) and not launched and raised_in(error, subject.version.ref.path)
    )
    if refusal:
        return fail(case, CaseStatus.REJECTED, str(error) or told.kind, error=told)
    if isinstance(error, torch.OutOfMemoryError):
        return fail(case, CaseStatus.OUT_OF_MEMORY, told.message[:300], error=told)
    compiler = refused_by_compiler(told)
    status = CaseStatus.COMPILE_ERROR if compiler else CaseStatus.RUNTIME_ERROR
    return fail(case, status, told.message[:300], error=told)


def _judged(subject: Subject, case: Case, inputs: Inputs, call: Call) -> CaseResult:
    """The checks that need no more calls, then the values, then the checks that call again."""
    failed = left_behind(subject, case, inputs, call)
    if failed:
        return failed
    call.memory.guarded.clear()  # what the wrapper made on its way is not needed any more
    try:
        native = oracle.native(subject.op, inputs.pristine)
        if failed := wrong_form(case, inputs.unchanged, call.value, native):
            return failed
        result = _compared(subject, case, inputs, call, native)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return not_run(case, "its float64 oracle does not fit the GPU's free memory")
    if result.status is CaseStatus.WRONG_VALUES:
        return races(subject, inputs, call, result)
    if failed := read_outside(subject, case, call):
        return failed
    if not call.launches.names:
        return fail(case, CaseStatus.NOT_TRITON, "no Triton kernel ran: torch made the output")
    return called_again(subject, case, inputs, call=call, native=native, result=result)


def _compared(
    subject: Subject, case: Case, inputs: Inputs, call: Call, native: oracle.Native
) -> CaseResult:
    """The comparison; with the conditioning only where the output is wrong without it."""
    large = max(inputs.largest, *(t.numel() for t in call.outputs)) >= LARGE_ELEMENTS
    if large and not subject.op.mutates:
        inputs.give_back()  # a large case is not called again
    result = compared(subject, case, inputs, call, native, conditioned=False)
    if result.status is CaseStatus.WRONG_VALUES:
        return compared(subject, case, inputs, call, native)
    return result
