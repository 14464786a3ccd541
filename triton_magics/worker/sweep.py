"""A version at every point of a grid: compiled in parallel, checked one by one, timed together."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.engine.protocol import (
    Answer,
    BenchJob,
    PlanJob,
    SweepJob,
    ValidateJob,
    VersionRef,
)
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    Configuration,
    KernelError,
    KernelResources,
    Setting,
    Status,
    Sweep,
    Timing,
)
from triton_magics.worker import bench, validate, verdicts
from triton_magics.worker.cases import plan
from triton_magics.worker.ceilings import Ceilings, ceilings
from triton_magics.worker.compile import Compiled, compile_version, too_much_shared
from triton_magics.worker.figures import launched, of_launch
from triton_magics.worker.launches import only_compiling
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    compile_cache,
    explain,
    load_op,
    load_version,
    ran_out_of_memory,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.precompile import compile_form, unchanged
from triton_magics.worker.pretend import PretendCuda, StubDriver, pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.slots import Slots, case_of
from triton_magics.worker.subject import Subject

META = torch.device("meta")
MAX_PROBES = 3
NOT_AHEAD = "no configuration could be compiled without a GPU"
BROKEN = "left the GPU's context unusable"


@dataclass
class Point:
    """A configuration on its way: its file, its code, what is known of it."""

    settings: dict[str, Setting]
    ref: VersionRef
    loaded: Loaded | None = None
    status: CaseStatus = CaseStatus.NOT_RUN
    reason: str | None = None
    error: KernelError | None = None
    timing: Timing | None = None
    comparison: Any = None
    kernel: KernelResources | None = None

    def end(self, status: CaseStatus, reason: str | None, error: KernelError | None = None) -> None:
        """What it came to, if that is not `passed`."""
        self.status, self.reason, self.error = status, reason, error

    @property
    def value(self) -> Configuration:
        """As it is told."""
        return Configuration(
            settings=self.settings, status=self.status, reason=self.reason, error=self.error,
            timing=self.timing, comparison=self.comparison, kernel=self.kernel,
        )  # fmt: skip


@dataclass
class Clock:
    """How long each step took, seconds."""

    steps_s: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Counts what is done meanwhile."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.steps_s[name] = self.steps_s.get(name, 0.0) + time.monotonic() - began


@dataclass(frozen=True)
class Task:
    """One sweep: what is asked for, on which inputs it is timed, who hears of it."""

    job: SweepJob
    op: ops.Op
    case: Case
    report: Reporter
    clock: Clock

    def in_parallel(self, act: Callable[[Any], None], items: Sequence[Any], stage: str) -> None:
        """Does it for every item, on as many threads as there are cores."""
        tell = partial(self.report.stage, stage, total=len(items), patience_s=self.job.compile_s)
        tell(0)
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for done, made in enumerate(as_completed([pool.submit(act, i) for i in items]), 1):
                made.result()
                tell(done)


def run(job: SweepJob, report: Reporter) -> tuple[Answer, bool]:
    """Every configuration with its verdict, its time, and its static figures."""
    clock = Clock()
    op = load_op(job.op)
    bench.check_sizes(op, (job.size,), job.dtype, job.seed)
    case = case_of(op, job.size, job.dtype, job.seed)
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
    # In this child's own scratch folder: whatever ends it, its home is swept.
    with (
        compile_cache(()),
        tempfile.TemporaryDirectory(dir=os.environ.get("TRITON_CACHE_DIR")) as folder,
    ):
        points = _written(job, Path(folder))
        task = Task(job, op, case, report, clock)
        update = (_compile_only if job.target else _on_gpu)(task, points)
    done = {"configurations": tuple(p.value for p in points), "steps_s": clock.steps_s}
    whole = sum(clock.steps_s.values())
    return base.model_copy(update={**done, "duration_s": whole, **update}), True


def _knobs(job: SweepJob) -> dict[str, tuple[Setting, ...]]:
    names = dict.fromkeys(name for point in job.points for name in point.settings)
    return {
        name: tuple(dict.fromkeys(p.settings[name] for p in job.points if name in p.settings))
        for name in names
    }


def _written(job: SweepJob, folder: Path) -> list[Point]:
    """Each source as a file: Triton compiles nothing else."""
    made = []
    for i, point in enumerate(job.points, 1):
        path = folder / f"configuration_{i}.py"
        # As many lines above it as in the version's file, so that an error names a line of that.
        path.write_bytes(b"\n" * job.version.header_lines + point.source.encode())
        # A version's name, so that it is compared as one.
        changes = {"version": f"v{i}", "path": str(path), "sha256": point.sha256}
        made.append(Point(dict(point.settings), job.version.model_copy(update=changes)))
    return made


def _load(points: Iterable[Point]) -> None:
    for point in points:
        try:
            point.loaded = load_version(point.ref)
        except LoadError as raised:
            error = explain(raised, point.ref)
            point.end(CaseStatus.RUNTIME_ERROR, f"{error.kind}: {error.message}", error)


# --------------------------------------------------------------------------- without a GPU


def _compile_only(task: Task, points: list[Point]) -> dict[str, Any]:
    """The static figures of each, cross-compiled on all cores; nothing is checked or timed."""
    target, mine = task.job.target or 90, threading.local()

    def load(name: str, binary: bytes) -> tuple[int, int]:
        found: tuple[int, int] = mine.seen.load(name, binary)
        return found

    def would_launch(metadata: Any, grid: tuple[int, ...]) -> None:
        mine.seen.launched(metadata, grid)

    triton.runtime.driver.set_active(StubDriver(target, load, would_launch))

    def compiled(point: Point) -> None:
        mine.seen = Compiled(target)
        error, note = compile_version(
            point.ref,
            task.op,
            {task.job.size: task.case},
            mine.seen,
            pretend=lambda: PretendCuda(META),
        )
        point.kernel = _heaviest(mine.seen.kernels.values())
        refused = too_much_shared(mine.seen)
        if error:
            point.end(CaseStatus.COMPILE_ERROR, f"{error.kind}: {error.message}", error)
        else:
            point.end(CaseStatus.NOT_RUN, refused or note)

    # The patches of a pretended GPU are the process's: made once, around all threads.
    with task.clock.step("compile"), pretending(META, target):
        task.in_parallel(compiled, points, f"compiling for sm_{target}")
    return compiled_status(points)


def compiled_status(points: Sequence[Point]) -> dict[str, Any]:
    """How a sweep without a GPU ends: what was not compiled ahead is no mistake of the version."""
    if any(p.kernel and not p.error for p in points):
        return {"status": Status.PASSED}
    if any(p.error for p in points):
        return {"status": Status.COMPILE_ERROR}
    return {"status": Status.NO_GPU, "message": NOT_AHEAD}


def _heaviest(kernels: Iterable[KernelResources]) -> KernelResources | None:
    """Of several kernels, the one that keeps most of the SM for itself."""
    return max(kernels, key=lambda k: (k.spill_bytes or 0, k.registers or 0), default=None)


# -------------------------------------------------------------------------------- on a GPU


def _on_gpu(task: Task, points: list[Point]) -> dict[str, Any]:
    """Compiled on all cores, each checked as a quick validation does, the right ones timed."""
    uuid, what = environment().gpu_uuid, f"sweeping {task.op.name}"
    probes = _probes(task)
    with gpu_lock(uuid, alone=False, what=what, waiting=task.report.waiting):
        task.report.stage("compiling", patience_s=task.job.compile_s)
        with task.clock.step("compile"), only_compiling():
            _load(points)
            forms = list(dict.fromkeys((c.shape, c.dtype) for c in (*probes, task.case)))
            todo = [(p.loaded, form) for p in points if p.loaded for form in forms]
            with unchanged(*(p.loaded.module for p in points if p.loaded)):
                task.in_parallel(lambda one: compile_form(task.op, *one), todo, "compiling")
        with task.clock.step("check"):
            broken = _check_all(task, probes, points)
    if broken:
        return {"status": Status.CRASHED, "message": broken}
    known = ceilings(environment(), task.report)
    with (
        gpu_lock(uuid, alone=True, what=what, waiting=task.report.waiting),
        task.clock.step("time"),
    ):
        return _time(task, [p for p in points if p.status is CaseStatus.PASSED], known)


def _probes(task: Task) -> list[Case]:
    """Awkward shapes and layouts of a quick plan; the timed size is checked by itself."""
    job = task.job
    asked = PlanJob(op=job.op, dtypes=(job.dtype,), plan="quick", seed=job.seed, device_kind="gpu")
    return [c for c in plan(task.op, asked, (job.dtype,)) if c.size is None][:MAX_PROBES]


def _check_all(task: Task, probes: list[Case], points: list[Point]) -> str | None:
    """Each point's verdict; a sentence where one of them has broken the GPU for this process."""
    job, device = task.job, this_device()
    slots = Slots(task.op, task.case, device, n=1)
    for done, point in enumerate(points):
        if point.loaded is None:
            continue
        told = f"checking {point.value.label}"
        task.report.stage(told, done, len(points), patience_s=job.compile_s)
        asked = ValidateJob(op=job.op, version=point.ref, dtypes=(job.dtype,), seed=job.seed)
        _check(Subject(task.op, point.loaded, asked, device, ""), point, probes, slots)
        task.report.configuration(point.value)
        if not _alive():
            return f"{point.value.label} {BROKEN}"
    return None


def _check(subject: Subject, point: Point, probes: list[Case], slots: Slots) -> None:
    """The probes with every check of a validation, then the timed size."""
    for case in probes:
        result, _ = validate.run_case(subject, case)
        if result.status.failed:
            return point.end(result.status, _why(result), result.error)
    try:
        with torch.no_grad(), pretending(subject.device):
            (call,) = slots.calls(subject.version.call, 1)
            call.before()
            call.fresh()
            value = call.kept(call.act())
            with launched() as seen:
                subject.version.call(*slots.given(1))
            _settle()
        wrong = slots.wrong([value])
    except BaseException as error:  # noqa: BLE001 (whatever a version raises is its verdict)
        told = explain(error, point.ref, subject.version.module)
        memory = ran_out_of_memory(error)
        status = CaseStatus.OUT_OF_MEMORY if memory else CaseStatus.RUNTIME_ERROR
        return point.end(status, f"{told.kind}: {told.message[:300]}", told)
    point.kernel = _heaviest(of_launch(launch, slots.case.size or "") for launch in seen)
    if wrong:
        return point.end(CaseStatus.WRONG_VALUES, f"{slots.case.label}: {wrong}")
    point.status = CaseStatus.PASSED
    return None


def _why(result: CaseResult) -> str:
    found = result.mismatch
    wrong = f"{found.n_wrong:,} of {found.n_elements:,} elements wrong" if found else result.reason
    return f"{result.case.label}: {wrong}"


def _alive() -> bool:
    """Whether this process can still use its GPU."""
    try:
        _settle()
    except RuntimeError:
        return False
    return True


def _settle() -> None:
    """Until the device has done all that was asked of it; raises what it could not do."""
    if this_device().type == "cuda":
        torch.cuda.synchronize()


def _time(task: Task, right: list[Point], known: Ceilings | None) -> dict[str, Any]:
    """All that are right in random-order rounds with torch; who then gives a wrong answer goes."""
    job, report = task.job, task.report
    while right:
        asked = BenchJob(
            op=job.op, versions=tuple(p.ref for p in right), sizes=(job.size,), runs=job.runs,
            dtype=job.dtype, cold=job.cold, seed=job.seed, budget_s=0.0, compile_s=job.compile_s,
        )  # fmt: skip
        report.stage("gauging the timer", patience_s=60)
        loaded = tuple(p.loaded for p in right if p.loaded)
        made = bench.measure(asked, task.op, loaded, report, known=known)
        culprits = _gone(right, made)
        if made["status"] is Status.CRASHED:
            labels = [p.value.label for p in culprits]
            told = f"{labels[0]} {BROKEN}" if labels else made.get("message")
            return {**_filled(right, made), "status": Status.CRASHED, "message": told}
        if not culprits or made["status"] is Status.PASSED:
            return _filled(right, made)
        right = [p for p in right if p not in culprits]
    return {"status": Status.FAILED}


def _gone(right: list[Point], made: dict[str, Any]) -> list[Point]:
    """Who got no time, each with the reason: a wrong answer, a broken GPU, no valid run."""
    said = made.get("message") or ""
    reasons = {gap.provider: gap.reason for gap in made["not_timed"]}
    status = CaseStatus.WRONG_VALUES if said and reasons else CaseStatus.NOT_RUN
    if made["status"] is Status.CRASHED:
        status = CaseStatus.RUNTIME_ERROR
        reasons |= {p.ref.version: said for p in right if said.startswith(f"{p.ref.version} ")}
    found = [p for p in right if p.ref.version in reasons]
    for point in found:
        name = point.ref.version
        point.end(status, reasons[name].removeprefix(f"{name} "))
    return found


def _filled(points: list[Point], made: dict[str, Any]) -> dict[str, Any]:
    """Timings and comparisons to their points; what the session says goes to the sweep."""
    timings = {t.provider: t for t in made["timings"]}
    timed = [p for p in points if p.ref.version in timings]
    best = min(timed, key=lambda p: timings[p.ref.version].mean_us, default=None)
    pairs = {}
    if best:
        told, _ = verdicts.compare(made["timings"], made["tick_us"], (best.ref.version,))
        pairs = {c.candidate: c for c in told if c.baseline == best.ref.version}
    for point in timed:
        name, label = point.ref.version, point.value.label
        point.timing = timings[name].model_copy(update={"provider": label})
        if best and name in pairs:
            named = {"candidate": label, "baseline": best.value.label}
            point.comparison = pairs[name].model_copy(update=named)
    kept = ("status", "floor_us", "conditions", "badges")
    update = {name: made[name] for name in kept if name in made}
    whole = next((gap.reason for gap in made["not_timed"] if gap.provider is None), None)
    message = made.get("message") or whole
    return {**update, "torch": timings.get("torch"), "message": message}
