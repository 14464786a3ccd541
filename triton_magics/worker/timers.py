"""One timed call on a GPU, with the host, the caches and the compiler kept out of the number."""

from __future__ import annotations

import gc
import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from triton_magics import stats
from triton_magics.model import Clock

MIN_GATE_US, MAX_GATE_US = 40.0, 20_000.0
LEAST_ROOM = 1.25  # of a gate: times what its host needs on average
CYCLES_PER_US = 2_000  # of a GPU's clock, at most
FLUSH_L2S = 2
MAX_TRIES = 4
RUN_US = 108.0  # a shorter call is made several times a run: it varies by 0.2 us (H200)
MAX_CALLS = 18
GAUGE_SAMPLES = 32  # each of a kernel that writes in a place of its own
PLACE_FLOATS = 2**19  # 2 MiB apart: no two of them in one page
TINY = ("_empty", "_store")  # the names of the kernels that a timer is gauged with
EMPTY, STORE = "empty", "store"
SLOW = "the host was slower than the gate"


@triton.jit
def _empty(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    pass


@triton.jit
def _store(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, offsets.to(tl.float32))


def _nothing() -> None:
    """No work."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Call:
    """What is timed, and what belongs around it. Each piece queues work on the GPU's one stream.

    Attributes:
        act: the call itself.
        before: ahead of the gate; leaves the inputs in a state that no right answer is made from,
            and poisons memory.
        fresh: behind the gate; gives the inputs their contents, so that work which does not wait
            for the stream computes from what was there before.
        kept: takes what the stream has of the output when the call has ended, so that work which
            is not done by then is missing.
        of: who is called; each has a gate as long as their host needs.
    """

    act: Callable[[], Any]
    before: Callable[[], None] = _nothing
    fresh: Callable[[], None] = _nothing
    kept: Callable[[Any], Any] = _as_it_is
    of: Hashable = None


@dataclass(frozen=True)
class Sample:
    """One call: microseconds by the timer's clock, and its output."""

    raw_us: float
    value: Any
    discarded: tuple[str, ...]


class Try(NamedTuple):
    """One call as it was timed, and why it does not count, if so."""

    raw_us: float
    value: Any
    reason: str | None


class Unstable(Exception):
    """No valid sample in `MAX_TRIES`; the message counts the reasons."""


class Timer(ABC):
    """Times calls, and those again that were no valid samples.

    Attributes:
        clock: what is timed.
        spread_bytes: how large the sets of inputs should be together.
    """

    clock: Clock = "gpu"
    spread_bytes = 0

    def calls_a_run(self, raw_us: float, sets: int) -> int:
        """How many calls make a run.

        Args:
            raw_us: of the quickest who is timed.
            sets: of inputs that there are.
        """
        return max(1, min(int(RUN_US / raw_us), MAX_CALLS)) if raw_us else 1

    def run(self, calls: Sequence[Call]) -> list[Sample]:
        """A valid sample of each call.

        Raises:
            Unstable: every try of one of them was invalid.
        """
        discarded: list[list[str]] = [[] for _ in calls]
        samples: dict[int, Sample] = {}
        for _ in range(MAX_TRIES):
            todo = [i for i in range(len(calls)) if i not in samples]
            for i, (raw_us, value, reason) in zip(todo, self.tries(calls, todo), strict=True):
                if reason is None:
                    samples[i] = Sample(raw_us, value, tuple(discarded[i]))
                else:
                    discarded[i].append(reason)
            if len(samples) == len(calls):
                return [samples[i] for i in range(len(calls))]
        self.give_up()
        worst = max(discarded, key=len)
        reasons = sorted({f"{r} ({worst.count(r)} times)" for r in worst})
        raise Unstable(f"no valid run in {MAX_TRIES} tries: {', '.join(reasons)}")

    def sample(self, act: Callable[[], Any]) -> Sample:
        """A valid sample of one call with nothing around it."""
        return self.run([Call(act)])[0]

    @abstractmethod
    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        """One try of each of the calls that are still to do."""

    def give_up(self) -> None:  # noqa: B027 (most timers learn nothing)
        """Forgets what it has learnt of a call that has no valid sample."""

    def settle(self) -> None:
        """Until the GPU has done all that was asked of it."""
        torch.cuda.synchronize()

    def gauged(self, own_us: Mapping[str, float]) -> Gauged:
        """What this timer adds to a call, with tiny kernels whose own times are known.

        It is another in every process, 2.3 to 2.6 us on an H200. To a kernel that writes it adds
        about 0.1 us more than to one that does not, unless a profiler is attached; so one that
        writes is asked, as all do that are timed.

        Args:
            own_us: of each of `tiny_kernels`, by CUPTI; empty where that is not known.
        """
        kernels = tiny_kernels()
        for act in kernels.values():
            act()
        self.settle()
        samples = self.run([Call(act) for act in kernels.values()] * GAUGE_SAMPLES)
        raw = [s.raw_us for s in samples]
        by_name = {n: stats.middle_mean(raw[i :: len(kernels)]) for i, n in enumerate(kernels)}
        added_us = by_name[STORE] - own_us[STORE] if STORE in own_us else None
        return Gauged(
            floor_us=by_name[EMPTY],
            added_us=None if added_us is None else max(added_us, 0.0),
            tick_us=stats.clock_tick_us(raw),
        )


class Gauged(NamedTuple):
    """A timer on this GPU, in microseconds.

    Attributes:
        floor_us: what an empty kernel takes through it.
        added_us: what it adds to a call; None where the kernels' own times are not known.
        tick_us: the step of its clock; None if it never moved.
    """

    floor_us: float
    added_us: float | None
    tick_us: float | None


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
class Gate:
    """How long one caller's gate is: what their host needs to queue a call, with room.

    Source: as long as TCP waits for an answer, the mean and four mean deviations (RFC 6298).
    """

    us: float = 100.0
    _mean_us: float | None = None
    _deviation_us: float = 0.0

    @property
    def cycles(self) -> int:
        """Of the GPU's clock."""
        return int(self.us * CYCLES_PER_US)

    def tell(self, host_us: float, *, closed: bool) -> None:
        """What the host has just needed, and whether the gate was still closed then.

        Of a hiccup of the host at most twice the gate counts, so that not every call to come waits.
        """
        needed_us = min(host_us, 2 * self.us)
        if self._mean_us is None:
            self._mean_us, self._deviation_us = needed_us, needed_us / 4
        else:
            off_us = needed_us - self._mean_us
            self._mean_us += off_us / 8
            self._deviation_us += (abs(off_us) - self._deviation_us) / 4
        wanted_us = max(self._mean_us + 4 * self._deviation_us, LEAST_ROOM * self._mean_us)
        self.us = wanted_us if closed else max(wanted_us, 2 * self.us)
        self.us = min(max(self.us, MIN_GATE_US), MAX_GATE_US)


class GatedTimer(Timer):
    """Times calls behind a spin on the GPU, so that the host has queued all before they start.

    For each: spin, fresh contents, flush the L2, start event, call, end event. It is valid only if
    the spin had not ended when the end event was queued, and nothing was compiled or allocated
    meanwhile. Until it is done no more is queued than the copy of its output and what comes ahead
    of the next one's spin: on an H200 calls that wait behind a call add 0.3 to 1.2 us to it.
    """

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        self.cold = cold
        self._gates: dict[tuple[Hashable, bool], Gate] = {}
        self._flush = flushed(l2_bytes)
        self._device = torch.cuda.current_device()
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._opened = torch.cuda.Event()
        self.compiled = 0
        self._count_compiles()

    def _count_compiles(self) -> None:
        def listener(**kwargs: object) -> None:
            self.compiled += 1

        triton.knobs.compilation.listener = listener

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        """One after the other, each from an idle GPU."""
        before = self.compiled, device_allocations()
        chosen = [calls[i] for i in todo]
        ahead = [call.before for call in chosen[1:]] + [_nothing]
        tried = [self._try(call, first=not n, ahead=ahead[n]) for n, call in enumerate(chosen)]
        reason = disturbed(before, (self.compiled, device_allocations()))
        return [one._replace(reason=reason or (None if closed else SLOW)) for one, closed in tried]

    def give_up(self) -> None:
        """The next call's gate is as long as a first one's."""
        self._gates.clear()

    def _try(self, call: Call, *, first: bool, ahead: Callable[[], None]) -> tuple[Try, bool]:
        """A call, and whether the gate was still closed when all of it was queued.

        The first one after somebody else's takes the host longer: it has a gate of its own.
        `ahead` is what the next one wants to be done before its gate.
        """
        stream = torch.cuda.current_stream(self._device)
        start, end, opened = self._start, self._end, self._opened
        gate = self._gates.setdefault((call.of, first), Gate())
        if first:
            call.before()
        begun = time.perf_counter()
        torch.cuda._sleep(gate.cycles)
        opened.record(stream)
        call.fresh()
        if self.cold:
            self._flush()
        start.record(stream)
        value = call.act()
        end.record(stream)
        closed = not opened.query()
        gate.tell(1e6 * (time.perf_counter() - begun), closed=closed)
        torch.cuda.set_stream(stream)  # the copy waits for no other that the call leaves
        kept = call.kept(value)
        del value  # its memory is what `ahead` poisons
        ahead()
        torch.cuda.synchronize(self._device)
        return Try(1e3 * start.elapsed_time(end), kept, None), closed


def disturbed(before: tuple[int, int], after: tuple[int, int]) -> str | None:
    """What happened meanwhile that a timing must not contain."""
    if after[0] != before[0]:
        return "compiled meanwhile"
    return "GPU memory was allocated meanwhile" if after[1] != before[1] else None


def flushed(l2_bytes: int) -> Callable[[], None]:
    """What empties the L2: it reads twice its size.

    What was written before is written back meanwhile, so the timed call finds no write-back left.
    """
    read = torch.zeros(FLUSH_L2S * l2_bytes // 4, device="cuda")
    sink = torch.empty((), device="cuda")

    def flush() -> None:
        torch.sum(read, dim=0, out=sink)

    return flush


def tiny_kernels() -> dict[str, Callable[[], None]]:
    """One that does nothing, and one that writes 64 KiB, each time in another place.

    How long a write takes depends on where it goes: by up to 0.4 us on an H200.
    """
    places = torch.zeros(GAUGE_SAMPLES, PLACE_FLOATS, device="cuda")
    turns = itertools.cycle(places.unbind())
    return {
        EMPTY: lambda: _empty[(1,)](places, BLOCK=16) and None,
        STORE: lambda: _store[(128,)](next(turns), BLOCK=128) and None,
    }


def device_allocations() -> int:
    """How often the driver was asked for memory so far."""
    # As a nested dict: flattening it costs more than a short kernel's whole run.
    return int(torch.cuda.memory_stats_as_nested_dict().get("num_device_alloc", 0))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collects once, then not again while this lasts."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
