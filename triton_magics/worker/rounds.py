"""One benchmark's rounds: everyone once in each, in random order, every output checked."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from triton_magics import ops, stats
from triton_magics.engine.protocol import BenchJob
from triton_magics.model import Discard, NotTimed, Status, Timing
from triton_magics.worker.graph_timer import NotCaptured
from triton_magics.worker.load import explain, in_short
from triton_magics.worker.providers import COMPILE, Provider
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import this_device
from triton_magics.worker.slots import Slots, case_of, traffic
from triton_magics.worker.timers import Sample, Watch
from triton_magics.worker.torch_settings import TorchSettings
from triton_magics.worker.verdicts import AGAIN, compare, undecided

T = TypeVar("T")
WARM_CALLS = 3
EXTRA_ROUNDS = 15
MAX_ROUNDS = 100
SMALL_SETS = 32  # where a set lies in memory is worth 1 % of a call of 3 us (H200)
KEPT_TIMES = 2.0  # of a softmax on an H200 at most 1.07, the median of ten runs
KEPT_ROUNDS = 5
KEEPS = "does {} keep its answer? At {} a run's first call takes {:.1f} times as long as the others"
UNEQUAL = "it does not compute what {} is: {}"


class WrongOutput(Exception):
    """A timed call of `provider` gave a wrong answer; the benchmark is void."""

    def __init__(self, provider: str, wrong: str) -> None:
        super().__init__(f"{provider} gave a wrong answer in a timed run: {wrong}")
        self.provider = provider


class UnequalRival(Exception):
    """A provider of `--against` gave another answer than the op's; the message says how far off."""


class GpuLost(Exception):
    """A CUDA error that leaves this process without its GPU; the message says whose and where."""


@dataclass
class Series:
    """What one provider gave at one size, round by round.

    Attributes:
        raw_us: of each run.
        first_times: how many times as long as the others a run's first call took.
        discards: of its calls, by reason.
    """

    raw_us: list[float] = field(default_factory=list)
    first_times: list[float] = field(default_factory=list)
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
    settings: TorchSettings = field(default_factory=TorchSettings)
    meddlers: set[str] = field(default_factory=set)
    keepers: list[str] = field(default_factory=list)

    def put_back(self, provider: Provider) -> None:
        """Torch's settings as they were, whoever changed them; and who did is remembered."""
        if self.settings.put_back():
            self.meddlers.add(provider.name)

    def look_for_keepers(self, series: Mapping[str, Series], size: str) -> None:
        """Remembers whose first call of a run is far longer: the others get the same contents."""
        for name, own in series.items():
            if len(own.first_times) < KEPT_ROUNDS:
                continue
            if (times := statistics.median(own.first_times)) >= KEPT_TIMES:
                self.keepers.append(KEEPS.format(name, size, times))


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
        session.look_for_keepers(field.series, size)
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
    """Who waits for a verdict, or is what others wait for."""
    net_us = {name: field.watch.net_us(series.raw_us) for name, series in field.series.items()}
    waiting = undecided(net_us, field.watch.tick_us, rivals)
    return [p for p in timed if p.name in waiting]


def _field(session: Session, size: str, seed: int) -> Field:
    """Everyone warm, and as many calls a run as their times ask for."""
    if COMPILE in session.job.against:
        # Else its second shape would be compiled for shapes of any size, and be slower for it.
        torch._dynamo.reset()
    case = case_of(session.op, size, session.job.dtype, seed)
    timer = session.watch.timer
    n = len(session.providers) + 12
    device, spread = this_device(), timer.spread_bytes
    slots = Slots(session.op, case, device, n=n, small=SMALL_SETS, spread_bytes=spread)
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
        reason = why(provider, error)
        if "CUDA error" in str(error):
            told = f"{provider.name} at {size}: {reason}; nothing after it could be timed"
            raise GpuLost(told) from error
        field.drop(provider, size, reason)
    return None


def why(provider: Provider, error: BaseException) -> str:
    """What went wrong when a provider was called, and at which line of its cell."""
    if isinstance(error, UnequalRival):
        return str(error)
    if provider.version is None:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return in_short(explain(error, provider.version.ref, provider.version.module))


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
    raw_us = [s.raw_us for s in samples]
    own.raw_us.append(stats.middle_mean(raw_us))
    if len(raw_us) > 1 and field.watch.timer.clock == "gpu":
        first_us, *others_us = field.watch.net_us(raw_us)
        own.first_times.append(first_us / stats.middle_mean(others_us))


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
