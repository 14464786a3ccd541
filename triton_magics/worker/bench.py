"""How fast are these versions, beside torch?"""

from __future__ import annotations

import importlib
import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeVar

import torch

from triton_magics import ops, stats
from triton_magics.engine.protocol import Answer, BenchJob
from triton_magics.model import Benchmark, Census, Discard, NotTimed, Status, Timing, shape_text
from triton_magics.worker import conditions, interpreted
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.ceilings import Ceilings, ceilings
from triton_magics.worker.census import Profile, census, profiled
from triton_magics.worker.graph_timer import GraphTimer, NotCaptured
from triton_magics.worker.launch_timer import LaunchTimer
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    UserFault,
    compile_cache,
    explain,
    load_op,
    load_version,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.precision import Precision
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.slots import Slots, case_of, traffic
from triton_magics.worker.timers import (
    GatedTimer,
    Gauged,
    Sample,
    Timer,
    Unstable,
    no_garbage_collection,
)
from triton_magics.worker.verdicts import AGAIN, compare, undecided

T = TypeVar("T")
WARM_CALLS = 3
EXTRA_ROUNDS = 15
MAX_ROUNDS = 100
TIMERS = {"gated": GatedTimer, "graph": GraphTimer, "launch": LaunchTimer}
_GAUGED: dict[tuple[str, bool], Gauged] = {}
META = torch.device("meta")
MEDDLED = "{} changes torch's precision settings; they were put back"
COMPILE = "torch.compile"
UNEQUAL = "it does not compute what {} is: {}"
RAW = "raw times: CUPTI could not tell what the timer adds"


@dataclass(frozen=True)
class Provider:
    """Who is timed."""

    name: str
    call: Callable[..., Any]
    version: Loaded | None = None


class WrongOutput(Exception):
    """A timed call of `provider` gave a wrong answer; the benchmark is void."""

    def __init__(self, provider: str, wrong: str) -> None:
        super().__init__(f"{provider} gave a wrong answer in a timed run: {wrong}")
        self.provider = provider


class UnequalRival(Exception):
    """A provider of `--against` gave another answer than the op's; the message says how far off."""


class GpuLost(Exception):
    """A CUDA error that leaves this process without its GPU; the message says whose and where."""


@dataclass(frozen=True)
class Watch:
    """A timer that was gauged: what it adds, and its tick, in microseconds."""

    timer: Timer
    added_us: float | None
    tick_us: float | None
    floor_us: float | None = None

    def net_us(self, raw_us: Sequence[float]) -> tuple[float, ...]:
        """Times without what the timer adds."""
        return tuple(max(raw - (self.added_us or 0.0), 0.01) for raw in raw_us)


@dataclass
class Series:
    """What one provider gave at one size, round by round."""

    raw_us: list[float] = field(default_factory=list)
    discards: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """One benchmark on a GPU."""

    job: BenchJob
    op: ops.Op
    providers: tuple[Provider, ...]
    watch: Watch
    report: Reporter
    deadline: float
    fall_back: Callable[[], Watch] | None = None
    precision: Precision = field(default_factory=Precision)
    meddlers: set[str] = field(default_factory=set)

    def put_back(self, provider: Provider) -> None:
        """The precision settings as they were, whoever changed them; and who did is remembered."""
        if self.precision.put_back():
            self.meddlers.add(provider.name)


@dataclass(frozen=True)
class Field:
    """One size: who is timed, by which timer, on what, and how many calls make a run."""

    watch: Watch
    alive: list[Provider]
    slots: Slots
    series: dict[str, Series]
    gaps: list[NotTimed]
    calls: int
    notes: tuple[str, ...] = ()

    def drop(self, provider: Provider, size: str, reason: str) -> None:
        """Takes out who can't be timed here; the others go on."""
        self.alive.remove(provider)
        self.series.pop(provider.name, None)
        self.gaps.append(NotTimed(size=size, provider=provider.name, reason=reason))


def run(job: BenchJob, report: Reporter) -> tuple[Answer, bool]:
    """The whole benchmark, in the interpreter where there is no GPU."""
    started = time.monotonic()
    device = this_device()
    report.environment(environment())
    op = load_op(job.op)
    if job.dtype not in op.dtypes:
        raise UserFault(f"{op.name} has no dtype {job.dtype!r}; it declares {', '.join(op.dtypes)}")
    base = _base(job)
    report.stage("loading")
    for name in job.against:
        _against(name, op)  # refused before anything is timed
    check_sizes(op, job.sizes, job.dtype, job.seed)
    precision = Precision()
    try:
        with pretending(device):
            versions = tuple(load_version(ref) for ref in job.versions)
    except LoadError as error:
        return base.model_copy(
            update={"message": f"a version could not be imported: {error}"}
        ), True
    if device.type == "cpu":
        filled = interpreted.run(job, op, versions, base, report)
        return _ended(filled, started), False
    if COMPILE in job.against:
        report.stage("loading torch.compile", patience_s=job.compile_s)
        _load_compiler()
    wait = lambda said: report.stage(said, patience_s=60)  # noqa: E731
    what = f"timing {job.op.name}"
    uuid = environment().gpu_uuid
    with gpu_lock(uuid, alone=True, what=what, waiting=wait), compile_cache(job.versions):
        report.stage("measuring this GPU (once per machine)", patience_s=120)
        if precision.put_back():
            base = base.model_copy(update={"badges": (MEDDLED.format("a version's import"),)})
        filled = base.model_copy(
            update=measure(job, op, versions, report, known=ceilings(environment()))
        )
        filled = filled.model_copy(update={"badges": (*base.badges, *filled.badges)})
    return _ended(filled, started), filled.status is not Status.PASSED or job.census


def check_sizes(op: ops.Op, sizes: Sequence[str], dtype: str, seed: int) -> None:
    """Every shape of the caller's own is one that the op makes inputs of.

    Raises:
        UserFault: one is not.
    """
    for size in sizes:
        case = case_of(op, size, dtype, seed)
        if size in op.sizes:
            continue
        try:
            op.make_inputs(case.shape, getattr(torch, dtype), META, torch.Generator())
        except Exception as error:
            known = ", ".join(f"{name} {shape_text(s)}" for name, s in op.sizes.items())
            raise UserFault(
                f"{op.name} makes no inputs of shape {size} ({error}); its sizes: {known}"
            ) from error


def _ended(benchmark: Benchmark, started: float) -> Benchmark:
    return benchmark.model_copy(update={"duration_s": time.monotonic() - started})


def _base(job: BenchJob) -> Benchmark:
    return Benchmark(
        op=job.op.name,
        status=Status.FAILED,
        versions=tuple(v.version for v in job.versions),
        sha256s=tuple(v.sha256 for v in job.versions),
        providers=("torch", *(v.version for v in job.versions), *job.against),
        sizes=job.sizes,
        runs=job.runs,
        dtype=job.dtype,
        against=job.rivals,
        cold=job.cold,
        clock=environment().device_kind,
        environment=environment(),
        seed=job.seed,
    )


def _providers(job: BenchJob, op: ops.Op, versions: tuple[Loaded, ...]) -> tuple[Provider, ...]:
    """torch, the versions, what they are compared against, and torch again as the control."""
    torch_itself = Provider("torch", op.reference)
    own = [Provider(v.name, v.call, v) for v in versions]
    others = [Provider(name, _against(name, op)) for name in job.against]
    return (torch_itself, *own, *others, Provider(AGAIN, op.reference))


def _load_compiler() -> None:
    """Imports what torch.compile needs: seconds, which nobody should wait for the GPU for."""
    torch.compile(torch.neg, backend="aot_eager")(torch.ones(1))
    importlib.import_module("torch._inductor.compile_fx")
    importlib.import_module("torch._inductor.codegen.triton")


def _against(name: str, op: ops.Op) -> Callable[..., Any]:
    """`torch.compile`, or `module:function` importable here.

    Raises:
        UserFault: neither.
    """
    if name == COMPILE:
        # One kernel needs no pool of compilers, whose processes would outlive the call.
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.compile_threads = 1
        compiled: Callable[..., Any] = torch.compile(op.reference)
        return compiled
    module, _, function = name.partition(":")
    try:
        found: Callable[..., Any] = attrgetter(function)(importlib.import_module(module))
        if not callable(found):
            raise TypeError(f"{function} is no function")
    except Exception as error:  # whatever the module raises when it is imported
        raise UserFault(
            f"--against {name}: {type(error).__name__}: {error}; write torch.compile, a version, "
            "or module:function that can be imported from here"
        ) from error
    return found


# ------------------------------------------------------------------------------------ on a GPU


def measure(
    job: BenchJob,
    op: ops.Op,
    versions: tuple[Loaded, ...],
    report: Reporter,
    *,
    known: Ceilings | None,
) -> dict[str, Any]:
    """Everything that a benchmark says after its GPU was asked; `known`: that GPU's ceilings."""
    watch = gauged(job, job.timer, known)
    session = Session(
        job=job,
        op=op,
        providers=_providers(job, op, versions),
        watch=watch,
        report=report,
        deadline=time.monotonic() + job.budget_s,
        fall_back=lambda: gauged(job, "gated", known),
    )
    own_us = _own_us(job, known)
    update: dict[str, Any] = {
        "clock": watch.timer.clock,
        "floor_us": watch.floor_us,
        "tick_us": watch.tick_us,
        "timer_us": watch.added_us,
        "empty_kernel_us": own_us.get("empty") if job.timer == "gated" else None,
        "copy_gbps": known.copy_gbps if known else None,
        "matmul_tflops": known.matmul_tflops if known else {},
        "ceilings_measured": known.measured if known else None,
        "badges": () if own_us or job.timer != "gated" else (RAW,),
    }
    library, uuid = conditions.nvml(), environment().gpu_uuid
    before = conditions.read(library, uuid)
    with torch.no_grad(), no_garbage_collection():
        update |= all_sizes(session)
        if job.census:
            update["census"] = censuses(session)
    meddled = tuple(MEDDLED.format(name) for name in sorted(session.meddlers))
    badges, notes = conditions.told(before, conditions.read(library, uuid))
    badges = (*update["badges"], *meddled, *badges)
    return {**update, "badges": badges, "conditions": (*update["conditions"], *notes)}


def _own_us(job: BenchJob, known: Ceilings | None) -> dict[str, float]:
    """The tiny kernels' own times, with the caches as they will be."""
    if known is None:
        return {}
    return known.cold if job.cold else known.hot


def gauged(job: BenchJob, name: str, known: Ceilings | None) -> Watch:
    """A timer by its name, gauged in this process; net where the ceilings are known.

    What it adds stays the same in a process, so it is gauged once, and no benchmark has another
    figure for it than the one before.
    """
    timer = TIMERS[name](environment().l2_bytes or 64 * 2**20, cold=job.cold)
    own_us = _own_us(job, known) if name == "gated" else {}
    found = _GAUGED.get((name, job.cold)) or timer.gauged(own_us)
    if known:  # in a rehearsal others may use the GPU
        _GAUGED[name, job.cold] = found
    return Watch(timer, found.added_us, found.tick_us, found.floor_us)


def all_sizes(session: Session) -> dict[str, Any]:
    """Timings, comparisons and what could not be timed, over all sizes."""
    timings: list[Timing] = []
    missing: list[NotTimed] = []
    comparisons, controls = [], []
    notes: list[str] = []
    ended: dict[str, Any] = {}
    for size in session.job.sizes:
        try:
            field = _one_size(session, size)
        except WrongOutput as wrong:
            culprit = NotTimed(size=size, provider=wrong.provider, reason=str(wrong))
            return {
                "status": Status.FAILED,
                "message": str(wrong),
                "timings": tuple(timings),
                "not_timed": (culprit,),
                "conditions": tuple(notes),
            }
        except GpuLost as lost:
            ended = {"status": Status.CRASHED, "message": str(lost)}
            break
        except torch.OutOfMemoryError:
            missing.append(NotTimed(size=size, reason="does not fit the GPU's free memory"))
            torch.cuda.empty_cache()
            continue
        missing += field.gaps
        notes += field.notes
        made = [_timing(session, size, name, s, field) for name, s in field.series.items()]
        for timing in made:
            session.report.timing(timing)
        pairs, control = compare(made, field.watch.tick_us, session.job.rivals)
        timings += [t for t in made if t.provider != AGAIN]
        comparisons += pairs
        controls += control
    return {
        "status": Status.PASSED if timings else Status.FAILED,
        "timings": tuple(timings),
        "comparisons": tuple(comparisons),
        "controls": tuple(controls),
        "not_timed": tuple(missing),
        "conditions": tuple(notes),
        **ended,
    }


def censuses(session: Session, profile: Profile = profiled) -> tuple[Census, ...]:
    """The kernels of everyone's call at the largest size, the control left out."""
    size = session.job.sizes[-1]
    session.report.stage("counting kernels", patience_s=60)
    case = case_of(session.op, size, session.job.dtype, session.job.seed)
    given = make_pristine(session.op, case, this_device())
    made = []
    for provider in session.providers[:-1]:
        try:
            act = partial(provider.call, *given)
            made.append(census(provider.name, size, act, profile=profile))
        except Exception as error:  # noqa: BLE001 (it has no time at this size either)
            made.append(Census(provider=provider.name, size=size, note=_reason(provider, error)))
    return tuple(made)


def _one_size(session: Session, size: str) -> Field:
    """The rounds at one size, everyone's by one timer: the gated one where another fails."""
    try:
        return _rounds(session, size)
    except NotCaptured as failed:
        if session.fall_back is None:
            raise
        said = f"{size}: {failed}; everyone was timed there behind the gate instead"
    # Not while that exception is handled: it would be taken for the cause of one to come.
    field = _rounds(replace(session, watch=session.fall_back(), fall_back=None), size)
    return replace(field, notes=(said,))


def _rounds(session: Session, size: str) -> Field:
    """Rounds at one size; after the official ones, of those alone whose verdict is still open."""
    job, report = session.job, session.report
    draw = random.Random(f"{job.seed}-{size}")  # noqa: S311 (an order that can be replayed)
    field = _field(session, size, draw.getrandbits(31))
    timed, done, rounds = field.alive, 0, job.runs
    while done < rounds and timed:
        report.stage(f"timing {size}", done, rounds)
        field.slots.refill(draw.getrandbits(31))
        for provider in draw.sample(timed, len(timed)):
            _one_run(session, provider, field, size)
        done += 1
        if done == rounds < MAX_ROUNDS and time.monotonic() < session.deadline:
            timed = _still_open(field, timed, job.rivals)
            rounds = min(rounds + EXTRA_ROUNDS, MAX_ROUNDS)
        timed = [p for p in timed if p in field.alive]
    return field


def _still_open(field: Field, timed: list[Provider], rivals: Sequence[str]) -> list[Provider]:
    """Who waits for a verdict; with torch its control, which tells what a difference is worth."""
    net_us = {name: field.watch.net_us(series.raw_us) for name, series in field.series.items()}
    waiting = undecided(net_us, field.watch.tick_us, rivals)
    if "torch" in waiting:
        waiting.add(AGAIN)
    return [p for p in timed if p.name in waiting]


def _field(session: Session, size: str, seed: int) -> Field:
    """Everyone warm, and as many calls a run as their times ask for."""
    if COMPILE in session.job.against:
        # Else its second shape would be compiled for shapes of any size, and be slower for it.
        torch._dynamo.reset()
    case = case_of(session.op, size, session.job.dtype, seed)
    timer = session.watch.timer
    n = len(session.providers) + 12
    slots = Slots(session.op, case, this_device(), n=n, spread_bytes=timer.spread_bytes)
    field = Field(
        watch=session.watch,
        alive=list(session.providers),
        slots=slots,
        series={p.name: Series() for p in session.providers},
        gaps=[],
        calls=1,
    )
    fastest = min(
        (t for p in session.providers if (t := _warm(session, p, field, size))), default=0
    )
    return replace(field, calls=timer.calls_a_run(fastest, len(slots)))


def _warm(session: Session, provider: Provider, field: Field, size: str) -> float | None:
    """Compiles, autotunes and calls; raw microseconds of a call. None: not timed at this size."""
    session.report.stage(f"warming {provider.name} at {size}", patience_s=session.job.compile_s)

    def calls() -> float:
        for i in range(WARM_CALLS):
            provider.call(*field.slots.given(i))
        field.watch.timer.settle()
        samples = field.watch.timer.run(field.slots.calls(provider.call, WARM_CALLS))
        if provider.version is None and provider.call is not session.op.reference:
            _check_rival([s.value for s in samples], field)
        return min(s.raw_us for s in samples)

    raw_us = _or_drop(calls, provider, field, size)
    session.put_back(provider)
    return raw_us


def _check_rival(values: Sequence[Any], field: Field) -> None:
    """Whoever the versions are compared with computes the same.

    Raises:
        UnequalRival: it does not; it has no time here, and the rest stands.
    """
    if wrong := field.slots.wrong(values):
        raise UnequalRival(UNEQUAL.format(field.slots.op.name, wrong))


def _or_drop(act: Callable[[], T], provider: Provider, field: Field, size: str) -> T | None:
    """What it gives; if it raises, the provider has no time at this size, and the rest stands.

    Raises:
        GpuLost: a CUDA error, after which no call in this process can work.
        NotCaptured: it can't be timed this way; another timer may.
    """
    try:
        return act()
    except NotCaptured as error:
        raise NotCaptured(f"{provider.name} can't be captured in a CUDA graph ({error})") from error
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        field.drop(provider, size, "out of GPU memory")
    except BaseException as error:
        reason = _reason(provider, error)
        if "CUDA error" in str(error):
            told = f"{provider.name} at {size}: {reason}; nothing after it could be timed"
            raise GpuLost(told) from error
        field.drop(provider, size, reason)
    return None


def _reason(provider: Provider, error: BaseException) -> str:
    if isinstance(error, UnequalRival):
        return str(error)
    if provider.version is None:
        return f"{type(error).__name__}: {str(error)[:200]}"
    told = explain(error, provider.version.ref, provider.version.module)
    line = f" (cell line {told.cell_line})" if told.cell_line else ""
    return f"{told.kind}: {told.message[:200]}{line}"


def _one_run(session: Session, provider: Provider, field: Field, size: str) -> None:
    """One run of a provider: valid, checked calls, each on a slot that it has not just seen.

    Raises:
        WrongOutput: an output is not right.
    """
    own = field.series[provider.name]

    def timed() -> list[Sample]:
        return field.watch.timer.run(field.slots.calls(provider.call, field.calls))

    samples = _or_drop(timed, provider, field, size)
    session.put_back(provider)
    if samples is None:
        return
    for reason in itertools.chain.from_iterable(s.discarded for s in samples):
        own.discards[reason] = own.discards.get(reason, 0) + 1
    if provider.call is not session.op.reference:
        wrong = field.slots.wrong([s.value for s in samples])
        if wrong and provider.version:
            raise WrongOutput(provider.name, wrong)
        if wrong:
            field.drop(provider, size, UNEQUAL.format(field.slots.op.name, wrong))
            return
    own.raw_us.append(stats.middle_mean([s.raw_us for s in samples]))


def _timing(session: Session, size: str, name: str, series: Series, field: Field) -> Timing:
    runs = session.job.runs
    net_us = field.watch.net_us(series.raw_us)
    n_bytes, flops = traffic(session.op, field.slots)
    return Timing(
        provider=name,
        size=size,
        shape=field.slots.case.shape,
        clock=field.watch.timer.clock,
        samples_us=net_us[:runs],
        raw_us=tuple(series.raw_us[:runs]),
        extra_us=net_us[runs:],
        discards=tuple(Discard(reason=r, count=n) for r, n in series.discards.items()),
        calls=field.calls,
        bytes=n_bytes,
        flops=flops,
    )


__all__ = ["Unstable", "run"]
