"""How fast are these versions, beside torch?"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, BenchJob
from triton_magics.model import Benchmark, Discard, NotTimed, Status, Timing
from triton_magics.worker import interpreted, oracle
from triton_magics.worker.ceilings import Ceilings, ceilings
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
from triton_magics.worker.pretend import pretending
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.slots import Slots, case_of, traffic
from triton_magics.worker.timers import GatedTimer, Unstable, no_garbage_collection
from triton_magics.worker.verdicts import AGAIN, compare, undecided

WARM_CALLS = 3
EXTRA_ROUNDS = 15
MAX_ROUNDS = 100


@dataclass(frozen=True)
class Provider:
    """Who is timed."""

    name: str
    call: Callable[..., Any]
    version: Loaded | None = None


class WrongOutput(Exception):
    """A timed call gave a wrong answer; the benchmark is void."""


@dataclass
class Series:
    """What one provider gave at one size, round by round; None where a round had no valid run."""

    raw_us: list[float] = field(default_factory=list)
    discards: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Session:
    """One benchmark on a GPU."""

    job: BenchJob
    op: ops.Op
    providers: tuple[Provider, ...]
    timer: GatedTimer
    report: Reporter
    correction_us: float
    tick_us: float | None
    deadline: float


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
    wait = lambda said: report.stage(said, patience_s=60)  # noqa: E731
    what = f"timing {job.op.name}"
    uuid = environment().gpu_uuid
    with gpu_lock(uuid, alone=True, what=what, waiting=wait), compile_cache(job.versions):
        report.stage("measuring this GPU (once per machine)", patience_s=120)
        filled = base.model_copy(
            update=measure(job, op, versions, report, known=ceilings(environment()))
        )
    return _ended(filled, started), filled.status is not Status.PASSED


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


def _against(name: str, op: ops.Op) -> Callable[..., Any]:
    """`torch.compile`, or `module:function` importable here.

    Raises:
        UserFault: neither.
    """
    if name == "torch.compile":
        compiled: Callable[..., Any] = torch.compile(op.reference)
        return compiled
    module, _, function = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserFault(
            f"--against {name}: {error}; write torch.compile, a version, or module:function"
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
    timer = GatedTimer(environment().l2_bytes or 64 * 2**20, cold=job.cold)
    floor_us, tick_us = timer.floor()
    session = Session(
        job=job,
        op=op,
        providers=_providers(job, op, versions),
        timer=timer,
        report=report,
        correction_us=_correction(floor_us, known),
        tick_us=tick_us,
        deadline=time.monotonic() + job.budget_s,
    )
    update: dict[str, Any] = {
        "floor_us": floor_us,
        "tick_us": tick_us,
        "empty_kernel_us": known.empty_kernel_us if known else None,
        "copy_gbps": known.copy_gbps if known else None,
        "badges": () if known and known.empty_kernel_us else ("raw times: the floor is not known",),
    }
    with torch.no_grad(), no_garbage_collection():
        return {**update, **_all_sizes(session)}


def _correction(floor_us: float, known: Ceilings | None) -> float:
    """What to take off a raw time: the timer's cost without the empty kernel's own time."""
    own_us = known.empty_kernel_us if known else None
    return max(floor_us - own_us, 0.0) if own_us else 0.0


def _all_sizes(session: Session) -> dict[str, Any]:
    """Timings, comparisons and what could not be timed, over all sizes."""
    timings: list[Timing] = []
    missing: list[NotTimed] = []
    comparisons, controls = [], []
    for size in session.job.sizes:
        try:
            series, gaps, slots = _one_size(session, size)
        except WrongOutput as wrong:
            return {"status": Status.FAILED, "message": str(wrong), "timings": tuple(timings)}
        except torch.OutOfMemoryError:
            missing.append(NotTimed(size=size, reason="does not fit the GPU's free memory"))
            torch.cuda.empty_cache()
            continue
        missing += gaps
        made = [_timing(session, size, name, s, slots) for name, s in series.items()]
        for timing in made:
            session.report.timing(timing)
        pairs, control = compare(made, session.tick_us, seed=session.job.seed)
        timings += [t for t in made if t.provider != AGAIN]
        comparisons += pairs
        controls += control
    return {
        "status": Status.PASSED if timings else Status.FAILED,
        "timings": tuple(timings),
        "comparisons": tuple(comparisons),
        "controls": tuple(controls),
        "not_timed": tuple(missing),
    }


def _one_size(session: Session, size: str) -> tuple[dict[str, Series], list[NotTimed], Slots]:
    """Rounds at one size until every verdict is decided or the time is up."""
    job, report = session.job, session.report
    draw = random.Random(f"{job.seed}-{size}")  # noqa: S311 (an order that can be replayed)
    case = case_of(session.op, size, job.dtype, draw.getrandbits(31))
    slots = Slots(session.op, case, this_device(), n=len(session.providers) + 12)
    expected = oracle.expect(session.op, slots.pristine(0), case, None, None)
    alive, gaps = _warm(session, size, slots)
    series = {p.name: Series() for p in alive}
    rounds = job.runs
    done = 0
    while done < rounds:
        report.stage(f"timing {size}", done, rounds)
        slots.refill(draw.getrandbits(31))
        for provider in draw.sample(alive, len(alive)):
            _one_run(session, provider, series, slots, expected)
        done += 1
        more = done == rounds and rounds < MAX_ROUNDS and time.monotonic() < session.deadline
        if more and undecided({n: s.raw_us for n, s in series.items()}, session):
            rounds = min(rounds + EXTRA_ROUNDS, MAX_ROUNDS)
    return series, gaps, slots


def _warm(session: Session, size: str, slots: Slots) -> tuple[list[Provider], list[NotTimed]]:
    """Compiles, autotunes and calls everyone; who fails here is not timed at this size."""
    alive, gaps = [], []
    for provider in session.providers:
        session.report.stage(f"warming {provider.name} at {size}", patience_s=session.job.compile_s)
        try:
            for i in range(WARM_CALLS):
                provider.call(*slots.given(i))
            torch.cuda.synchronize()
            alive.append(provider)
        except torch.OutOfMemoryError:
            gaps.append(NotTimed(size=size, provider=provider.name, reason="out of GPU memory"))
            torch.cuda.empty_cache()
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            gaps.append(
                NotTimed(size=size, provider=provider.name, reason=_reason(provider, error))
            )
    return alive, gaps


def _reason(provider: Provider, error: Exception) -> str:
    if provider.version is None:
        return f"{type(error).__name__}: {str(error)[:200]}"
    told = explain(error, provider.version.ref, provider.version.module)
    line = f" (cell line {told.cell_line})" if told.cell_line else ""
    return f"{told.kind}: {told.message[:200]}{line}"


def _one_run(
    session: Session,
    provider: Provider,
    series: dict[str, Series],
    slots: Slots,
    expected: oracle.Expected,
) -> None:
    """One valid, checked run of a provider on a slot that it has not seen."""
    given = slots.next()
    own = series[provider.name]
    sample = session.timer.sample(lambda: provider.call(*given), slots.poison)
    for reason in sample.discarded:
        own.discards[reason] = own.discards.get(reason, 0) + 1
    own.raw_us.append(sample.raw_us)
    if provider.version is not None and (wrong := slots.wrong(sample.value, expected)):
        raise WrongOutput(f"{provider.name} gave a wrong answer in a timed run: {wrong}")


def _timing(session: Session, size: str, name: str, series: Series, slots: Slots) -> Timing:
    runs = session.job.runs
    net = [max(raw - session.correction_us, 0.01) for raw in series.raw_us]
    n_bytes, flops = traffic(session.op, slots)
    return Timing(
        provider=name,
        size=size,
        shape=slots.case.shape,
        clock="gpu",
        samples_us=tuple(net[:runs]),
        raw_us=tuple(series.raw_us[:runs]),
        extra_us=tuple(net[runs:]),
        discards=tuple(Discard(reason=r, count=n) for r, n in series.discards.items()),
        bytes=n_bytes,
        flops=flops,
    )


__all__ = ["Unstable", "run"]
