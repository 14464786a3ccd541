"""Sweep job: compile a grid's configurations in parallel, check each one, time them together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import BenchJob, PlanJob, SweepJob, ValidateJob
from triton_magics.harness.compile_ahead import compile_form, input_forms, restore_modules
from triton_magics.harness.compile_job import (
    compile_version,
)
from triton_magics.harness.correctness import one_case
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import (
    LoadError,
    compile_cache,
    is_out_of_memory,
    load_op,
    load_version,
    make_kernel_error,
)
from triton_magics.harness.process.device import GPU, META, environment, kernel_runtime, this_device
from triton_magics.harness.process.fake_gpu import FakeCuda, fake_gpu
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing import bench_job, speed_verdicts
from triton_magics.harness.timing.input_pool import InputPool, timing_case
from triton_magics.harness.timing.peak_rates import PeakRates, get_peak_rates
from triton_magics.harness.timing.sweep_task import GridPoint, StepTimer, SweepTask
from triton_magics.languages.kernel_compiler import CodeRequest, Target
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    KernelResources,
    Setting,
    Status,
    Sweep,
)

MAX_PROBES = 3
NOT_AHEAD = "no configuration could be compiled without a GPU"
NONE_TIMED = "no configuration could be timed"
BROKEN = "left the GPU's context unusable"


def run(job: SweepJob, report: Reporter) -> tuple[Answer, bool]:
    """Run the sweep: a verdict, a time and static figures for every configuration."""
    clock = StepTimer()
    op = load_op(job.op)
    bench_job.check_sizes(op, (job.size,), job.dtype, job.seed)
    case = timing_case(op, job.size, job.dtype, job.seed)
    report.environment(environment())
    base = Sweep(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.FAILED,
        knobs=_knobs(job),
        size=job.size,
        shape=case.shape,
        dtype=job.dtype,
        cold=job.cold,
        clock=None if job.target else "gpu",
        target=f"sm_{job.target}" if job.target else None,
        seed=job.seed,
        environment=environment(),
    )
    with compile_cache((), language=job.version.language):
        points = _make_points(job)
        task = SweepTask(job, op, case, report, clock)
        update = (_compile_only if job.target else _on_gpu)(task, points)
    results = {"configurations": tuple(p.configuration for p in points), "steps_s": clock.steps_s}
    total_s = sum(clock.steps_s.values())
    return base.evolve(**{**results, "duration_s": total_s, **update}), True


def _knobs(job: SweepJob) -> dict[str, tuple[Setting, ...]]:
    names = dict.fromkeys(name for point in job.points for name in point.settings)
    return {
        name: tuple(dict.fromkeys(p.settings[name] for p in job.points if name in p.settings))
        for name in names
    }


def _make_points(job: SweepJob) -> list[GridPoint]:
    """Return each configuration as a version."""
    points = []
    # As many lines above it as in the version's file, so that errors name the same lines.
    header = "\n" * job.version.header_lines
    for i, point in enumerate(job.points, 1):
        # The name of a version, so that it is compared like one.
        changes = {"version": f"v{i}", "source": header + point.source, "sha256": point.sha256}
        points.append(GridPoint(dict(point.settings), job.version.evolve(**changes)))
    return points


def _load(points: Iterable[GridPoint]) -> None:
    for point in points:
        try:
            point.loaded = load_version(point.ref)
        except LoadError as raised:
            error = make_kernel_error(raised, point.ref)
            point.set_outcome(CaseStatus.RUNTIME_ERROR, f"{error.kind}: {error.message}", error)


# --------------------------------------------------------------------------- without a GPU


def _compile_only(task: SweepTask, points: list[GridPoint]) -> dict[str, Any]:
    """Cross-compile each configuration on all cores for its static figures; time nothing."""
    target, runtime = Target(task.job.target or 90), kernel_runtime(task.job.version.language)
    with task.clock.step("compile"), runtime.cross_compile(target) as new_record:

        def compile_point(point: GridPoint) -> None:
            record, size = new_record(CodeRequest()), task.job.size
            error, note = compile_version(
                point.ref, task.op, {size: task.case}, record, pretend=lambda: FakeCuda(META)
            )
            point.kernel = _heaviest(record.kernels)
            if error:
                point.set_outcome(CaseStatus.COMPILE_ERROR, f"{error.kind}: {error.message}", error)
            else:
                refusal = record.launch_refusal()
                point.can_launch = refusal is None
                point.set_outcome(CaseStatus.NOT_RUN, refusal or note)

        # The fake GPU's patches are process-wide: applied once, around all threads.
        with fake_gpu(META, target):
            task.in_parallel(compile_point, points, f"compiling for sm_{target.capability}")
    return compiled_status(points)


def compiled_status(points: Sequence[GridPoint]) -> dict[str, Any]:
    """Return the status of a sweep without a GPU; a missing compilation is no compile error."""
    if any(p.kernel and not p.error for p in points):
        return {"status": Status.PASSED}
    if error := next((p.error for p in points if p.error), None):
        return {"status": Status.COMPILE_ERROR, "error": error}
    return {"status": Status.NO_GPU, "message": NOT_AHEAD}


def _heaviest(kernels: Iterable[KernelResources]) -> KernelResources | None:
    """Return the kernel that uses most spill memory and registers."""
    return max(kernels, key=lambda k: (k.spill_bytes or 0, k.registers or 0), default=None)


# -------------------------------------------------------------------------------- on a GPU


def _on_gpu(task: SweepTask, points: list[GridPoint]) -> dict[str, Any]:
    """Compile on all cores, check each point as a quick validation does, time the right ones."""
    uuid, purpose = environment().gpu_uuid, f"sweeping {task.op.name}"
    probes, runtime = _probes(task), kernel_runtime(task.job.version.language)
    with gpu_lock(uuid, exclusive=False, purpose=purpose, on_wait=task.report.waiting):
        task.report.stage("compiling", patience_s=task.job.compile_s)
        with task.clock.step("compile"), runtime.compile_only():
            _load(points)
            forms = input_forms([*probes, task.case])
            work = [(p.loaded, form) for p in points if p.loaded for form in forms]
            with restore_modules(*(p.loaded.module for p in points if p.loaded)):
                task.in_parallel(lambda one: compile_form(task.op, *one), work, "compiling")
        with task.clock.step("check"):
            broken = _check_all(task, probes, points)
    if broken:
        return _crash_fields(broken)
    peak_rates = get_peak_rates(environment(), task.report)
    with (
        gpu_lock(uuid, exclusive=True, purpose=purpose, on_wait=task.report.waiting),
        task.clock.step("time"),
    ):
        return _time(task, [p for p in points if p.status is CaseStatus.PASSED], peak_rates)


def _probes(task: SweepTask) -> list[Case]:
    """Return awkward shapes and layouts of a quick plan; the timed size is checked separately."""
    job = task.job
    plan_job = PlanJob(
        op=job.op, dtypes=(job.dtype,), plan="quick", seed=job.seed, device_kind="gpu"
    )
    plan = plan_cases(task.op, plan_job, DeviceFacts())
    return [c for c in plan.cases if c.size is None][:MAX_PROBES]


def _crash_fields(culprit: GridPoint) -> dict[str, Any]:
    """Return the end of a sweep in which one point broke the GPU for this process."""
    return {
        "status": Status.CRASHED,
        "culprit": culprit.settings,
        "message": f"{culprit.configuration.label} {BROKEN}",
    }


def _check_all(task: SweepTask, probes: list[Case], points: list[GridPoint]) -> GridPoint | None:
    """Check every point; return the one that broke the GPU for this process, if one did."""
    job, device = task.job, this_device()
    input_pool = InputPool(task.op, task.case, device, n=1)
    for done, point in enumerate(points):
        if point.loaded is None:
            continue
        stage = f"checking {point.configuration.label}"
        task.report.stage(
            stage, done, len(points), patience_s=job.compile_s, subject=point.settings
        )
        validation = ValidateJob(op=job.op, version=point.ref, dtypes=(job.dtype,), seed=job.seed)
        _check(Subject(task.op, point.loaded, validation, device, ""), point, probes, input_pool)
        task.report.configuration(point.configuration)
        if not _gpu_is_usable():
            return point
    return None


def _check(subject: Subject, point: GridPoint, probes: list[Case], input_pool: InputPool) -> None:
    """Run every check of a validation on the probes, then check the timed size."""
    for case in probes:
        result, _ = one_case.run_case(subject, case)
        if result.status.failed:
            return point.set_outcome(result.status, _failure_text(result), result.error)
    version = point.loaded
    assert version is not None
    try:
        with torch.no_grad(), fake_gpu(subject.device):
            (call,) = input_pool.make_calls(version.call, 1)
            call.before_gate()
            call.fill_inputs()
            value = call.copy_output(call.function())
            record = version.runtime.record_kernels(CodeRequest())
            with record.during(input_pool.case.size or ""):
                version.call(*input_pool.inputs(1))
            _synchronize()
        fault = input_pool.check_outputs([value], [call])
    except BaseException as error:  # noqa: BLE001 (whatever a version raises is its verdict)
        kernel_error = make_kernel_error(error, point.ref, version.module)
        memory = is_out_of_memory(error)
        status = CaseStatus.OUT_OF_MEMORY if memory else CaseStatus.RUNTIME_ERROR
        return point.set_outcome(
            status, f"{kernel_error.kind}: {kernel_error.message[:300]}", kernel_error
        )
    point.kernel = _heaviest(record.kernels)
    if fault:
        reason = f"{input_pool.case.label}: {fault.message}"
        return point.set_outcome(CaseStatus.WRONG_VALUES, reason)
    point.status = CaseStatus.PASSED
    return None


def _failure_text(result: CaseResult) -> str:
    mismatch = result.mismatch
    wrong = (
        f"{mismatch.n_wrong:,} of {mismatch.n_elements:,} elements wrong"
        if mismatch
        else result.reason
    )
    return f"{result.case.label}: {wrong}"


def _gpu_is_usable() -> bool:
    """Return whether this process can still use its GPU."""
    try:
        _synchronize()
    except RuntimeError:
        return False
    return True


def _synchronize() -> None:
    """Wait until the device is idle; raise its pending errors."""
    if this_device() == GPU:
        torch.cuda.synchronize()


def _time(task: SweepTask, passed: list[GridPoint], peak_rates: PeakRates | None) -> dict[str, Any]:
    """Time the passed points with torch in random-order rounds; drop those with wrong outputs."""
    job, report = task.job, task.report
    while passed:
        bench = BenchJob(
            op=job.op, versions=tuple(p.ref for p in passed), sizes=(job.size,), runs=job.runs,
            dtype=job.dtype, cold=job.cold, seed=job.seed, budget_s=0.0, compile_s=job.compile_s,
        )  # fmt: skip
        report.stage("calibrating the timer", patience_s=60)
        loaded = tuple(p.loaded for p in passed if p.loaded)
        measured = bench_job.measure(bench, task.op, loaded, report, peak_rates=peak_rates)
        culprits = _mark_untimed(passed, measured)
        if measured["status"] is Status.CRASHED:
            lost = measured["not_timed"][-1].provider  # it ended the session
            culprit = next((p for p in culprits if p.ref.version == lost), None)
            return {
                **_assign_timings(passed, measured),
                **(_crash_fields(culprit) if culprit else {}),
            }
        if not culprits or measured["status"] is Status.PASSED:
            return _assign_timings(passed, measured)
        passed = [p for p in passed if p not in culprits]
    return {"status": Status.FAILED}


def _mark_untimed(passed: list[GridPoint], measured: dict[str, Any]) -> list[GridPoint]:
    """Record why points have no time: a wrong output, a broken GPU, no valid run; return them."""
    message = measured.get("message") or ""
    reasons = {gap.provider: gap.reason for gap in measured["not_timed"]}
    status = CaseStatus.WRONG_VALUES if message and reasons else CaseStatus.NOT_RUN
    if measured["status"] is Status.CRASHED:
        status = CaseStatus.RUNTIME_ERROR
    untimed = [p for p in passed if p.ref.version in reasons]
    for point in untimed:
        name = point.ref.version
        point.set_outcome(status, reasons[name].removeprefix(f"{name} "))
    return untimed


def _assign_timings(points: list[GridPoint], measured: dict[str, Any]) -> dict[str, Any]:
    """Assign timings and comparisons to their points; return the fields of the sweep."""
    timings = {t.provider: t for t in measured["timings"]}
    timed = [p for p in points if p.ref.version in timings]
    best = min(timed, key=lambda p: timings[p.ref.version].mean_us, default=None)
    pairs = {}
    if best:
        comparisons, _ = speed_verdicts.compare_timings(
            measured["timings"], measured["tick_us"], (best.ref.version,)
        )
        pairs = {c.candidate: c for c in comparisons if c.baseline == best.ref.version}
    for point in timed:
        name, label = point.ref.version, point.configuration.label
        point.timing = timings[name].evolve(provider=label)
        if best and name in pairs:
            named = {"candidate": label, "baseline": best.configuration.label}
            point.comparison = pairs[name].evolve(**named)
    shared = ("status", "floor_us", "conditions", "badges")
    update = {name: measured[name] for name in shared if name in measured}
    whole_size = next((gap.reason for gap in measured["not_timed"] if gap.provider is None), None)
    message = measured.get("message") or whole_size
    if update["status"] is Status.PASSED and not timed:
        update["status"], message = Status.FAILED, message or NONE_TIMED
    return {**update, "torch": timings.get("torch"), "message": message}
