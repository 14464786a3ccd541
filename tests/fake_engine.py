"""An engine with scripted answers, for tests of what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton_magics.engine import Outcome
from triton_magics.engine.protocol import (
    BenchJob,
    CompileJob,
    DescribeJob,
    OpDescription,
    PlanJob,
    Progress,
    ReplayJob,
    RunJob,
    SelfTestJob,
    SweepJob,
    SweepPoint,
    ValidateJob,
)
from triton_magics.model import (
    Benchmark,
    Case,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    DeviceKind,
    EngineState,
    Environment,
    KernelError,
    Plan,
    Replay,
    RunResult,
    SelfTest,
    Status,
    Sweep,
    Timing,
    Tolerance,
    Validation,
    shape_of,
)

SHAPES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}
TORCH_US = {"small": 2.0, "medium": 6.0, "large": 54.0}


def environment(kind: DeviceKind) -> Environment:
    """An environment of that kind."""
    name = "NVIDIA H200" if kind == "gpu" else "CPU (Triton's interpreter)"
    return Environment(device_kind=kind, device=name, python="3.11", torch="2.13", triton="3.7")


class FakeEngine:
    """Answers every job at once: passed, compiled, and as fast as `times_us` says.

    Attributes:
        verdicts: source -> status of its validation; `passed` where it is not named.
        target: the GPU's compute capability, where it is known.
        times_us: version -> microseconds at small, medium, large.
        sweep_us: a configuration's settings -> microseconds, or what is wrong with it.
        answer: replaces the next answer.
        prints: what every job prints.
        steps: what every job tells of its progress.
        on_cancel: called when its job is cancelled.
        jobs: what was asked, in order.
    """

    def __init__(self, kind: DeviceKind = "gpu", missing: str | None = None) -> None:
        self.device_kind: DeviceKind = kind
        self.missing = missing
        self.target: int | None = None
        self.verdicts: dict[str, Status] = {}
        self.times_us: dict[str, tuple[float, float, float]] = {}
        self.sweep_us: Callable[[dict[str, Any]], float | CaseStatus] = lambda settings: 10.0
        self.answer: Callable[[Any], Outcome] | None = None
        self.jobs: list[Any] = []
        self.keys: list[str] = []
        self.warmed: list[str | None] = []
        self.closed = 0
        self.cancelled = 0
        self.on_cancel: Callable[[], None] | None = None
        self.prints = ""
        self.steps: tuple[Progress, ...] = ()
        self.busy: str | None = None

    def warm(self, mode: str | None = None) -> None:
        self.warmed.append(mode)

    def state(self) -> EngineState:
        return EngineState(
            device_kind=self.device_kind, device="a fake", missing=self.missing, busy=self.busy
        )

    def close(self) -> None:
        self.closed += 1

    def cancel(self, *, thread: int | None = None) -> str | None:
        self.cancelled += 1
        if self.on_cancel:
            self.on_cancel()
        return self.busy

    def run(
        self,
        job: Any,
        *,
        key: str = "",
        on_progress: Callable[[Progress], None] | None = None,
        on_output: Callable[[str], None] | None = None,
        **_: object,
    ) -> Outcome:
        self.jobs.append(job)
        self.keys.append(key)
        for step in self.steps if on_progress else ():
            on_progress(step)
        if self.prints and on_output:
            on_output(self.prints)
        if self.answer is not None and not isinstance(job, CompileJob):
            answer, self.answer = self.answer, None
            return answer(job)
        makers: dict[type, Callable[[Any], Any]] = {
            ValidateJob: self._validation,
            PlanJob: self._plan,
            ReplayJob: self._replay,
            BenchJob: self._benchmark,
            CompileJob: self._compilation,
            SweepJob: self._sweep,
            RunJob: self._run,
            DescribeJob: self._description,
            SelfTestJob: lambda _: SelfTest(status=Status.PASSED),
        }
        return Outcome(status="finished", answer=makers[type(job)](job))

    def _named(self, job: Any) -> dict[str, Any]:
        version = job.version
        return {
            "op": job.op.name,
            "version": version.version,
            "attempt": version.attempt,
            "sha256": version.sha256,
        }

    def _validation(self, job: ValidateJob) -> Validation:
        status = self.verdicts.get(job.version.sha256, Status.PASSED)
        dtypes = job.dtypes or ("float32", "float16", "bfloat16")
        passed = status is Status.PASSED
        cases = tuple(
            CaseResult(
                case=Case(shape=SHAPES[s], dtype=d, size=s, seed=1),
                status=CaseStatus.PASSED if passed else CaseStatus.WRONG_VALUES,
                error_share=0.4 if passed else 12.0,
                calibrated=True,
                tolerance=Tolerance(rtol=1e-5, atol=1e-5, origin="spec"),
            )
            for d in dtypes
            for s in SHAPES
        )
        return Validation(
            **self._named(job), status=status, plan=job.plan, seed=job.seed, dtypes=dtypes,
            cases=cases, environment=environment(self.device_kind), triton_kernels=("k",),
            badges=("quick",) if job.plan == "quick" else (),
        )  # fmt: skip

    def _description(self, job: DescribeJob) -> OpDescription:
        shapes = tuple(SHAPES.values())
        return OpDescription(
            name=job.op.name, sizes=SHAPES, shapes=shapes, dtypes=("float32",), signature="(x)",
            doc="", outputs=("[n, m] float32",),
        )  # fmt: skip

    def _replay(self, job: ReplayJob) -> Replay:
        error = KernelError(kind="OutOfBounds", message="reads outside input 0", file_line=9)
        return Replay(case=job.case, error=error)

    def _plan(self, job: PlanJob) -> Plan:
        dtypes = job.dtypes or ("float32",)
        own = [Case(shape=s, dtype=d, size="own", seed=1) for d in dtypes for s in job.own_shapes]
        cases = tuple(
            Case(shape=SHAPES[s], dtype=d, size=s, seed=1) for d in dtypes for s in SHAPES
        )
        return Plan(
            op=job.op.name, plan=job.plan, seed=job.seed, dtypes=dtypes, cases=(*cases, *own)
        )

    def _benchmark(self, job: BenchJob) -> Benchmark:
        versions = tuple(v.version for v in job.versions)
        on_gpu = self.device_kind == "gpu"
        providers = ("torch", *versions) if on_gpu else versions
        timings = tuple(
            Timing(
                provider=p, size=s, shape=shape_of(s) or SHAPES[s], clock=self.device_kind,
                samples_us=(self._us(p, s),) * job.runs,
            )
            for p in providers
            for s in job.sizes
        )  # fmt: skip
        return Benchmark(
            op=job.op.name, status=Status.PASSED, versions=versions,
            sha256s=tuple(v.sha256 for v in job.versions), providers=providers, sizes=job.sizes,
            runs=job.runs, dtype=job.dtype, clock=self.device_kind, timings=timings,
            environment=environment(self.device_kind), seed=job.seed,
        )  # fmt: skip

    def _us(self, provider: str, size: str) -> float:
        if provider == "torch":
            return TORCH_US.get(size, 900.0)
        known = self.times_us.get(provider.split("_", maxsplit=1)[0], (1.0, 4.0, 40.0))
        return dict(zip(SHAPES, known, strict=True)).get(size, 800.0)

    def _compilation(self, job: CompileJob) -> Compilation:
        return Compilation(**self._named(job), status=Status.PASSED, target=f"sm_{job.target}")

    def _sweep(self, job: SweepJob) -> Sweep:
        on_gpu = job.target is None
        return Sweep(
            **self._named(job), status=Status.PASSED, size=job.size, shape=SHAPES[job.size],
            knobs={n: tuple({p.settings[n] for p in job.points}) for n in job.points[0].settings},
            dtype=job.dtype, clock="gpu" if on_gpu else None, seed=job.seed,
            configurations=tuple(self._configuration(p, on_gpu) for p in job.points),
            environment=environment(self.device_kind),
        )  # fmt: skip

    def _configuration(self, point: SweepPoint, on_gpu: bool) -> Configuration:
        """Right, unless `sweep_us` says otherwise; without a GPU only compiled."""
        if not on_gpu:
            return Configuration(settings=point.settings, status=CaseStatus.NOT_RUN)
        told = self.sweep_us(point.settings)
        if isinstance(told, CaseStatus):
            return Configuration(settings=point.settings, status=told, reason=told.value)
        timing = Timing(
            provider="it", size="large", shape=(1,), clock="gpu", samples_us=(told,) * 10
        )
        return Configuration(settings=point.settings, status=CaseStatus.PASSED, timing=timing)

    def _run(self, job: RunJob) -> RunResult:
        return RunResult(
            **self._named(job), status=Status.PASSED, inputs="small",
            environment=environment(self.device_kind),
        )  # fmt: skip
