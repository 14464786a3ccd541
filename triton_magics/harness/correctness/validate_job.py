"""Validate job: run every check on every case of the plan, and return one verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import torch

from triton_magics import operators
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness.calibration_cases import choose_calibration_cases
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.case_order import spread
from triton_magics.harness.correctness.case_parts import select_part
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.case_scheduler import CaseScheduler
from triton_magics.harness.correctness.conclusion import (
    conclude_validation,
    without_refuted_strides,
)
from triton_magics.harness.correctness.failure_pattern import find_pattern
from triton_magics.harness.correctness.further_calls import passes
from triton_magics.harness.correctness.launch_evidence import LaunchEvidence
from triton_magics.harness.correctness.launch_phase import LaunchPhase
from triton_magics.harness.correctness.one_case import (
    breaks_context,
    is_context_error,
    run_case,
)
from triton_magics.harness.correctness.reference_checks import check_reference
from triton_magics.harness.correctness.remote_calls import RemoteCalls, VersionNotLoaded
from triton_magics.harness.correctness.series_plan import choose_long_series
from triton_magics.harness.correctness.shape_variants import is_defined
from triton_magics.harness.correctness.skip_rules import (
    CpuTimeMeter,
    not_run_result,
    skip_reason,
)
from triton_magics.harness.correctness.subject import EXPLANATION_S, Subject
from triton_magics.harness.load import (
    LoadError,
    UserFault,
    compile_cache,
    load_op,
    load_version,
    make_kernel_error,
)
from triton_magics.harness.process import subject_process
from triton_magics.harness.process.device import CPU, environment, kernel_runtime, this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.fork_server import one_thread
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.process.subject_link import SubjectFault
from triton_magics.harness.profiling.sanitizer import run_sanitizer
from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    CodeLine,
    FailurePattern,
    Sanitized,
    Status,
    Validation,
    source_lines,
)

PATTERN_S, PATTERN_GPU_S = 20.0, 6.0  # of trials for an explanation; on a GPU


def run(job: ValidateJob, report: Reporter) -> tuple[Answer, bool]:
    """Validate a version.

    Returns:
        the verdict, and whether this process must not be used again.
    """
    with one_thread():  # of torch on the CPU: more of them spin on small tensors
        return _run(job, report)


def _run(job: ValidateJob, report: Reporter) -> tuple[Answer, bool]:
    started = time.monotonic()
    report.environment(environment())
    op = load_op(job.op)
    base, cases = _plan(job, op, report)
    choose = _chooser(job, cases)
    order = choose(select_part(cases, base.dtypes, job.part, job.parts))
    if reason := kernel_runtime(job.version.language).refused_here():
        return _not_run_here(base, order, reason), False
    try:
        subject = load_subject(job, op, this_device())
        subject = replace(
            subject,
            long_series=choose_long_series(cases, job.plan),
            own_work=report.own_work,
        )
        tally = _Tally(subject)
    except VersionNotLoaded as failed:
        status = Status.RUNTIME_ERROR
        return conclude_validation(base, (), started, error=failed.error, status=status), True
    subject = tally.subject
    report.stage("calling its wrapper, kernels skipped")
    by_launches = LaunchPhase(subject, cases)
    order = spread(order, choose(by_launches.early_cases))
    with compile_cache((job.version,)):
        report.stage("compiling", patience_s=job.compile_s)
        lock = _shared_lock(job, report)
        with CaseScheduler.create(subject, order, report, lock, by_launches.order) as scheduler:
            for case in _ready_cases(tally, scheduler, by_launches, order, report, choose=choose):
                with tally.meter.measure(case):
                    result, launches = run_case(subject, case)
                tally.add(result, launches)
                report.case(result, budget_share=tally.budget_share)
            results = without_refuted_strides(tally.finish(tuple(order)))
            findings = _sanitize(subject, results, report) if job.sanitize else ()
    if job.only and not results:
        raise UserFault(
            f"no case of this plan has {job.only!r} in its label; a plan follows from the op, the "
            "seed and the version's text, and the verb `plan` lists most of it"
        )
    verdict = conclude_validation(base, results, started, evidence=tally.evidence)
    is_whole = job.has_whole_plan and not job.only
    unreached = _unreached_lines(subject) if verdict.passed and is_whole else ()
    if verdict.status is Status.FAILED:
        verdict = verdict.evolve(pattern=_find_pattern(tally, results, by_launches))
    verdict = verdict.evolve(sanitized=findings, unreached=unreached)
    return verdict, tally.stop is not None


def _find_pattern(
    tally: _Tally, results: Sequence[CaseResult], by_launches: LaunchPhase
) -> FailurePattern | None:
    """Return the condition under which a version fails, if one is found in a few seconds.

    Its trials must not cost the verdict: after an error of the version's process or of the driver
    there is no pattern, and the process is not used again.
    """
    subject = tally.subject
    limit_s = PATTERN_S if subject.is_interpreted else PATTERN_GPU_S
    trial = partial(_passes_trial, tally)
    try:
        with subject.own_work("searching for what the wrong cases share", EXPLANATION_S):
            return find_pattern(results, by_launches.plan, subject.ref, trial, limit_s)
    except (SubjectFault, RuntimeError) as error:  # RuntimeError: of torch, a driver's error
        tally.stop = f"a trial for the explanation failed: {error}"
        return None


def _unreached_lines(subject: Subject) -> tuple[CodeLine, ...]:
    """Return the statements of the version's functions that no case has run."""
    ref = subject.ref
    texts = source_lines(ref.source)
    return tuple(
        CodeLine(file_line=line, cell_line=ref.cell_line(line), code=texts[line - 1].strip())
        for line in subject.calls.unreached_lines()
    )


def _not_run_here(base: Validation, cases: Sequence[Case], reason: str) -> Validation:
    """Return a verdict on nothing: no kernel of the language can run in this process."""
    results = tuple(not_run_result(case, reason) for case in cases)
    status = Status.NO_GPU if this_device() == CPU else Status.UNAVAILABLE
    return base.evolve(status=status, message=reason, cases=results)


def _ready_cases(
    tally: _Tally,
    scheduler: CaseScheduler,
    by_launches: LaunchPhase,
    cases: list[Case],
    report: Reporter,
    *,
    choose: Callable[[Sequence[Case]], list[Case]],
) -> Iterator[Case]:
    """Yield each case when it can run; then, appended to the list, what the results call for."""
    phases: tuple[Callable[[], Sequence[Case]], ...] = (
        partial(scheduler.compiled_first, tuple(cases)),
        partial(by_launches.late_cases, scheduler),
        tally.contiguous_cases,
        tally.calibration_cases,
    )
    for number, phase in enumerate(phases):
        chosen = choose(phase())
        cases += chosen if number else ()
        left = [*chosen]
        while left:
            case = scheduler.take_next(left)
            tally.subject.advance_compilers()
            by_launches.advance(scheduler)
            if reason := tally.skip_reason(case) or scheduler.skip_reason(case):
                tally.skip(case, reason)
                continue
            scheduler.wait_until_ready(case)
            text, patience_s = f"validating {case.label}", tally.patience_of(case)
            done = len(chosen) - len(left) - 1
            report.stage(text, done, len(chosen), patience_s=patience_s, subject=case)
            tally.subject.inputs_ahead.next_case = next(iter(left), None)
            yield case


def _plan(
    job: ValidateJob, op: operators.Op, report: Reporter
) -> tuple[Validation, tuple[Case, ...]]:
    """Return the validation before its first case, and the cases; report both."""
    dtypes = job.dtypes or op.dtypes
    check_dtypes(op, dtypes)
    if job.op.source is not None:  # an op that ships was checked by the tests
        check_reference(op, this_device())
    runtime = kernel_runtime(job.version.language)
    facts = DeviceFacts.of(this_device(), runtime, op)
    plan = plan_cases(op, job, facts)
    cases = _with_contiguous(job, plan.cases)
    if job.part == 0:
        chosen = _chooser(job, cases)(cases)
        report.plan(tuple(not_run_result(c, "not reached") for c in chosen))
    report.stage("loading", patience_s=job.compile_s if runtime.builds_on_load else 0.0)
    base = Validation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        request=job.request,
        dtypes=dtypes,
        declared_dtypes=op.dtypes,
        declared_layouts=None if op.layouts == operators.LAYOUTS else op.layouts,
        scope=plan.scope,
        unchecked=runtime.limits_of_verdict(job.version.body, on_cpu=facts.is_interpreted),
        environment=environment(),
    )
    return base, cases


def _with_contiguous(job: ValidateJob, planned: tuple[Case, ...]) -> tuple[Case, ...]:
    """Return the cases, and that with the job's label which has a layout in the plan.

    It runs where a version rejects the layout, so only a replay names it. Its label may be a part
    of others.
    """
    if not job.only or any(case.label == job.only for case in planned):
        return planned
    again = (case.evolve(layouts=()) for case in planned if case.shape_class and case.layouts)
    return (*planned, *dict.fromkeys(case for case in again if case.label == job.only))


def _chooser(job: ValidateJob, planned: Sequence[Case]) -> Callable[[Sequence[Case]], list[Case]]:
    """Return what selects the cases with the words of the job; a whole label is that of one."""
    if any(case.label == job.only for case in planned):
        return lambda cases: [case for case in cases if case.label == job.only]
    return lambda cases: [case for case in cases if job.only in case.label]


def _passes_trial(tally: _Tally, case: Case) -> bool | None:
    """Return whether the version is right on a further case; None if it can't run."""
    if tally.stop or not is_defined(tally.subject.op, case.shape):
        return None
    try:
        return passes(tally.subject, case)
    except VersionRaised as raised:
        if is_context_error(raised.failure.error.message):
            tally.stop = f"a trial with {case.label} left the GPU's context unusable"
        return None
    except (UserFault, torch.OutOfMemoryError):
        return None


def load_subject(job: ValidateJob, op: operators.Op, device: torch.device) -> Subject:
    """Load the version, in the subject process if there is one.

    Raises:
        VersionNotLoaded: its module can't be imported, or has no such entry.
    """
    if link := subject_process.link():
        calls = RemoteCalls(link, job.version, job.op, device)
        return Subject(op, None, job, device, job.version.body, calls, link.memory)
    try:
        with fake_gpu(device):
            version = load_version(job.version)
    except LoadError as error:
        raise VersionNotLoaded(make_kernel_error(error, job.version)) from error
    return Subject(op, version, job, device, job.version.body)


def _shared_lock(job: ValidateJob, report: Reporter) -> Callable[[], AbstractContextManager[None]]:
    """Return the GPU's lock, which keeps timing out but not other validations."""
    return partial(
        gpu_lock, environment().gpu_uuid, exclusive=False, on_wait=report.waiting,
        purpose=f"validating {job.op.name} {job.version.version}",
    )  # fmt: skip


class _Tally:
    """The results so far, and whether the next case can run.

    Attributes:
        subject: the version under validation.
        evidence: the kernels and torch operations that ran.
        meter: CPU time of the cases.
        stop: why no further case can run, None if one can.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.evidence = LaunchEvidence(is_share_known=not subject.runtime.computes_in_torch)
        self.meter = CpuTimeMeter()
        self.stop: str | None = None
        self._results: list[CaseResult] = []

    def skip_reason(self, case: Case) -> str | None:
        """Return why a case can't be run; None if it can."""
        return self.stop or skip_reason(self.subject, case, self._results, self.meter)

    @property
    def budget_share(self) -> float:
        """Return the spent part of the budget, 0 to 1; 0 where nothing is limited by it."""
        budget_s = self.subject.job.budget_s
        if not budget_s or not self.subject.is_interpreted:
            return 0.0
        return min(self.meter.spent_s / budget_s, 1.0)

    def skip(self, case: Case, reason: str) -> None:
        """Take in a case that is not run."""
        self._results.append(not_run_result(case, reason))

    def patience_of(self, case: Case) -> float:
        """Return how many seconds a case may stay silent: an extent may compile, or be tuned."""
        may_compile = bool(case.extent) or self.subject.calls.tunes_itself
        return self.subject.job.compile_s if may_compile else 0.0

    def contiguous_cases(self) -> tuple[Case, ...]:
        """Return the cases that the version rejects in their layout, with contiguous inputs.

        What else they combine would not be checked otherwise.
        """
        rejected = [r.case for r in self._results if r.status is CaseStatus.REJECTED]
        again = (c.evolve(layouts=()) for c in rejected if c.shape_class and c.layouts)
        return () if self.stop else tuple(dict.fromkeys(again))

    def add(self, result: CaseResult, launches: Launches) -> None:
        """Take in the result of a case, and what it launched."""
        self.evidence.add(launches)
        self._results.append(result)
        if breaks_context(result):
            self.stop = f"not run: {result.case.label} left the GPU's context unusable"

    def calibration_cases(self) -> tuple[Case, ...]:
        """Return further cases, where no case of the plan detects a lower precision."""
        if self.stop:
            return ()
        subject = self.subject
        return choose_calibration_cases(subject.op, subject.job, subject.device, self._results)

    def finish(self, cases: tuple[Case, ...]) -> tuple[CaseResult, ...]:
        """Return the results in the order of the plan."""
        allocate_guarded = {case: i for i, case in enumerate(cases)}
        return tuple(sorted(self._results, key=lambda result: allocate_guarded[result.case]))


def _sanitize(
    subject: Subject, results: tuple[CaseResult, ...], report: Reporter
) -> tuple[Sanitized, ...]:
    """Run compute-sanitizer on the first failed case, else on the first case that ran."""
    ran = [r for r in results if r.status is not CaseStatus.NOT_RUN]
    first = next((r for r in ran if r.status.failed), ran[0] if ran else results[0])
    return tuple(run_sanitizer(subject.job, first.case, report, gpu=not subject.is_interpreted))


def check_dtypes(op: operators.Op, dtypes: tuple[str, ...]) -> None:
    """Check that the op declares every dtype.

    Raises:
        UserFault: one is not.
    """
    unknown = [d for d in dtypes if d not in op.dtypes]
    if unknown:
        raise UserFault(
            f"{op.name} has no dtype {unknown[0]!r}; it declares {', '.join(op.dtypes)}"
        )
