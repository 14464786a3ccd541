"""An executor with scripted results, for tests of their use."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from triton_magics.errors import Unavailable
from triton_magics.execution import Device, JobEvent, Limits, Outcome
from triton_magics.execution.base import EventListener
from triton_magics.execution.job_answers import (
    Findings,
    OpDescription,
    OpForms,
    SizeForms,
    TensorForm,
)
from triton_magics.execution.job_requests import (
    BenchJob,
    CompileJob,
    DescribeJob,
    FormsJob,
    JobRequest,
    PlanJob,
    ProbeJob,
    ProfileJob,
    ReplayJob,
    RunJob,
    SelfTestJob,
    SweepJob,
    SweepPoint,
    ValidateJob,
)
from triton_magics.execution.protocol import Progress
from triton_magics.model import (
    BackwardFacts,
    Benchmark,
    Case,
    CaseResult,
    CaseStatus,
    Compilation,
    Configuration,
    DeviceKind,
    EngineState,
    Environment,
    Finding,
    KernelError,
    KernelResources,
    OpFacts,
    Plan,
    Profile,
    ProfiledKernel,
    Replay,
    RunResult,
    SelfCheck,
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

COMPILE_ERROR = KernelError(kind="CompilationError", message="no such name")
CHECK = SelfCheck(name="a kernel against itself", passed=True, outcome="the same")


def environment(kind: DeviceKind) -> Environment:
    """Return an environment of that kind."""
    name = "NVIDIA H200" if kind == "gpu" else "CPU (Triton's interpreter)"
    return Environment(device_kind=kind, device=name, python="3.11", torch="2.13", triton="3.7")


class FakeHandle:
    """A job of a `FakeExecutor`, which runs in a thread of its own."""

    def __init__(
        self, engine: FakeExecutor, job: JobRequest, key: str, on_event: EventListener
    ) -> None:
        self.id = uuid.uuid4().hex
        self._engine = engine
        self._future: Future[Outcome] = Future()
        self._on_event = on_event
        threading.Thread(target=self._run, args=(job, key), daemon=True).start()

    def _run(self, job: JobRequest, key: str) -> None:
        try:
            outcome = self._engine.run(
                job, key=key, on_progress=lambda step: self._on_event(JobEvent(progress=step)),
                on_output=lambda text: self._on_event(JobEvent(output=text)),
            )  # fmt: skip
        except BaseException as error:  # noqa: BLE001 (raised by `result`)
            self._future.set_exception(error)
        else:
            self._future.set_result(outcome)
        self._on_event(JobEvent(state="ended"))

    def result(self, timeout_s: float | None = None) -> Outcome:
        return self._future.result(timeout_s)

    def cancel(self) -> bool:
        if self._future.done():
            return False
        self._engine.cancelled += 1
        if self._engine.on_cancel:
            self._engine.on_cancel()
        return True


class FakeExecutor:
    """An executor whose jobs pass at once, with the times of `times_us`.

    Attributes:
        verdicts: source -> status of its validation; `passed` where it is not named.
        target: the GPU's compute capability, where it is known.
        times_us: version -> microseconds at small, medium, large.
        own_sizes: the sizes of an op of the user's own; empty: small, medium, large.
        own_dtypes: its dtypes.
        own_backward: of its gradients.
        sweep_us: a configuration's settings -> microseconds, or the status of its failure.
        triton: version of Triton of its benchmarks.
        gpu: name of the GPU of its benchmarks.
        answer: replaces the next answer.
        prints: the output of every job.
        steps: the progress that every job reports.
        on_cancel: called when its job is cancelled.
        jobs: the submitted jobs, in order.
    """

    capacity = 1

    def __init__(self, kind: DeviceKind = "gpu", missing: str | None = None) -> None:
        self.device_kind: DeviceKind = kind
        self.missing = missing
        self.target: int | None = None
        self.verdicts: dict[str, Status] = {}
        self.times_us: dict[str, tuple[float, float, float]] = {}
        self.own_sizes: dict[str, tuple[int, ...]] = {}
        self.own_dtypes: tuple[str, ...] = ("float32",)
        self.own_backward: BackwardFacts | None = None
        self.sweep_us: Callable[[dict[str, Any]], float | CaseStatus] = lambda settings: 10.0
        self.triton = "3.7"
        self.gpu: str | None = None
        self.answer: Callable[[Any], Outcome] | None = None
        self.compiled_kernels: tuple[KernelResources, ...] = ()
        self.compile_error: KernelError | None = None
        self.jobs: list[Any] = []
        self.limits: list[Limits | None] = []
        self.keys: list[str] = []
        self.warmed: list[str | None] = []
        self.closed = 0
        self.cancelled = 0
        self.on_cancel: Callable[[], None] | None = None
        self.prints = ""
        self.steps: tuple[Progress, ...] = ()
        self.busy: str | None = None
        self.standby_ready = False

    def devices(self) -> tuple[Device, ...]:
        kind = self.device_kind
        return (Device(id=kind, kind=kind, name="a fake", capability=self.target),)

    def submit(
        self,
        job: JobRequest,
        *,
        device: str | None = None,
        key: str = "",
        limits: Limits | None = None,
        on_event: EventListener | None = None,
    ) -> FakeHandle:
        if self.missing:
            raise Unavailable(self.missing)
        self.limits.append(limits)
        return FakeHandle(self, job, key, on_event or (lambda event: None))

    def warm(self, mode: str | None = None) -> None:
        self.warmed.append(mode)

    def examine(self, ops: Sequence[OpFacts] = ()) -> tuple[Finding, ...]:
        return ()

    def state(self) -> EngineState:
        return EngineState(
            device_kind=self.device_kind, device="a fake", missing=self.missing, busy=self.busy,
            standby_ready=self.standby_ready,
        )  # fmt: skip

    def close(self) -> None:
        self.closed += 1

    def cancel(self, job_id: str) -> bool:
        return False

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
            ProbeJob: self._findings,
            PlanJob: self._plan,
            ReplayJob: self._replay,
            BenchJob: self._benchmark,
            CompileJob: self._compilation,
            SweepJob: self._sweep,
            ProfileJob: self._profile,
            RunJob: self._run,
            DescribeJob: self._description,
            FormsJob: self._forms,
            SelfTestJob: lambda _: SelfTest(status=Status.PASSED, checks=(CHECK,)),
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
            **self._named(job), status=status, request=job.request, dtypes=dtypes, cases=cases,
            error=COMPILE_ERROR if status is Status.COMPILE_ERROR else None,
            declared_dtypes=("float32", "float16", "bfloat16"),
            environment=environment(self.device_kind), triton_kernels=("k",),
        )  # fmt: skip

    def _description(self, job: DescribeJob) -> OpDescription:
        sizes = self.own_sizes or SHAPES
        return OpDescription(
            name=job.op.name, sizes=sizes, shapes=tuple(sizes.values()), dtypes=self.own_dtypes,
            signature="(x)",
            doc="", outputs=("[n, m] float32",), backward=self.own_backward,
        )  # fmt: skip

    def _forms(self, job: FormsJob) -> OpForms:
        tensors = {s: (TensorForm(name="x", dtype="float32", shape=SHAPES[s]),) for s in SHAPES}
        return OpForms(
            sizes=tuple(
                SizeForms(size=s, shape=SHAPES[s], inputs=each, outputs=each)
                for s, each in tensors.items()
            )
        )

    def _findings(self, job: ProbeJob) -> Findings:
        return Findings(sizes={"given": (16,)}, shapes=((1,), (3,)), input_names=("x",))

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
                provider=p, size=s, shape=shape_of(s) or self.own_sizes.get(s) or SHAPES[s],
                clock=self.device_kind, samples_us=(self._us(p, s),) * job.runs,
            )
            for p in providers
            for s in job.sizes
        )  # fmt: skip
        here = environment(self.device_kind).evolve(triton=self.triton)
        here = here.evolve(device=self.gpu) if self.gpu else here
        return Benchmark(
            backward_only=job.backward_only,
            op=job.op.name, status=Status.PASSED, versions=versions,
            sha256s=tuple(v.sha256 for v in job.versions), providers=providers, sizes=job.sizes,
            op_sizes=job.op_sizes, runs=job.runs, dtype=job.dtype,
            clock=self.device_kind, timings=timings,
            environment=here, seed=job.seed,
        )  # fmt: skip

    def _us(self, provider: str, size: str) -> float:
        if provider == "torch":
            return TORCH_US.get(size, 900.0)
        known_names = self.times_us.get(provider.split("_", maxsplit=1)[0], (1.0, 4.0, 40.0))
        return dict(zip(SHAPES, known_names, strict=True)).get(size, 800.0)

    def _compilation(self, job: CompileJob) -> Compilation:
        status = Status.COMPILE_ERROR if self.compile_error else Status.PASSED
        return Compilation(
            **self._named(job), status=status, target=f"sm_{job.target}",
            kernels=() if self.compile_error else self.compiled_kernels, error=self.compile_error,
        )  # fmt: skip

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
        """Return a right configuration, or one with the status that `sweep_us` gives."""
        if not on_gpu:
            kernel = KernelResources(name="k", num_warps=4)
            return Configuration(settings=point.settings, status=CaseStatus.NOT_RUN, kernel=kernel)
        messages = self.sweep_us(point.settings)
        if isinstance(messages, CaseStatus):
            return Configuration(settings=point.settings, status=messages, reason=messages.value)
        timing = Timing(
            provider="it", size="large", shape=(1,), clock="gpu", samples_us=(messages,) * 10
        )
        return Configuration(settings=point.settings, status=CaseStatus.PASSED, timing=timing)

    def _profile(self, job: ProfileJob) -> Profile:
        kernel = ProfiledKernel(
            name="kernel", share=1.0, duration_us=100.0, memory_pct=90.0, dram_pct=90.0, sm_pct=5.0
        )
        return Profile(
            **self._named(job), status=Status.PASSED, case=job.case, kernels=(kernel,),
            report_base64="bmN1", tool="ncu 2025.3.1.0", environment=environment(self.device_kind),
        )  # fmt: skip

    def _run(self, job: RunJob) -> RunResult:
        return RunResult(
            **self._named(job), status=Status.PASSED, inputs="small", first_call_ms=9.0,
            second_call_ms=0.1, environment=environment(self.device_kind),
        )  # fmt: skip
