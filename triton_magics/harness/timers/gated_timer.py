"""Time calls on a GPU without host time, cache state or compilation in the result."""

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

from triton_magics import languages, stats
from triton_magics.harness.process.device import GPU
from triton_magics.harness.timers.persisting_l2 import PersistingL2
from triton_magics.model import Clock

MIN_GATE_US, MAX_GATE_US = 40.0, 20_000.0
MIN_GATE_MARGIN = 1.25  # gate length over the mean host time
CYCLES_PER_US = 2_000  # upper bound of a GPU's clock
FLUSH_L2_SIZES = 2
MAX_TRIES = 4
RUN_US = 108.0  # shorter calls are repeated in a run: each varies by 0.2 us (H200)
MAX_CALLS = 18
CALIBRATION_SAMPLES = 32  # calls of each tiny kernel; each one stores to its own page
STORE_STRIDE_FLOATS = 2**19  # 2 MiB: no two stores share a page
EMPTY, STORE = "empty", "store"
HOST_TOO_SLOW = "the host was slower than the gate"


def _do_nothing() -> None:
    """Do nothing."""


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class TimedCall:
    """A timed call with its setup and its output copy; each queues work on the GPU's one stream.

    Attributes:
        function: the call itself.
        before_gate: runs ahead of the gate; clears the inputs and poisons memory, so that no right
            answer can be computed from them.
        fill_inputs: runs behind the gate; gives the inputs their contents. Work that does not wait
            for the stream computes from the cleared inputs.
        copy_output: copies the output as the stream has it when the call has ended. Work that is
            not done by then is missing from the copy.
        gate_key: identifies the caller; each caller has a gate as long as its host time needs.
        content: number of the contents of its inputs.
    """

    function: Callable[[], Any]
    before_gate: Callable[[], None] = _do_nothing
    fill_inputs: Callable[[], None] = _do_nothing
    copy_output: Callable[[Any], Any] = _identity
    gate_key: Hashable = None
    content: int = 0


@dataclass(frozen=True)
class Sample:
    """A valid sample of one call.

    Attributes:
        raw_us: duration by the timer's clock, microseconds.
        value: the call's output.
        discarded: reasons of the invalid attempts before it.
    """

    raw_us: float
    value: Any
    discarded: tuple[str, ...]


class TimedAttempt(NamedTuple):
    """One timed attempt of a call; `reason` says why it is invalid, None if it is valid."""

    raw_us: float
    value: Any
    reason: str | None


class UnstableTiming(Exception):
    """A call without a valid sample in `MAX_TRIES` attempts.

    Attributes:
        reasons: why each attempt was discarded, in order.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        counts = sorted({f"{r} ({reasons.count(r)} times)" for r in reasons})
        super().__init__(f"no valid run in {len(reasons)} tries: {', '.join(counts)}")
        self.reasons = tuple(reasons)


class Timer(ABC):
    """Time calls, and repeat those without a valid sample.

    Attributes:
        clock: the clock that measures the calls.
        spread_bytes: the total size that all sets of inputs should have.
    """

    clock: Clock = "gpu"
    spread_bytes = 0

    def calls_per_run(self, raw_us: float, sets: int) -> int:
        """Return the number of calls in a run.

        Args:
            raw_us: duration of the fastest provider's call, microseconds.
            sets: number of sets of inputs.
        """
        return max(1, min(int(RUN_US / raw_us), MAX_CALLS)) if raw_us else 1

    def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
        """Return a valid sample of each call.

        Raises:
            UnstableTiming: all attempts of one call were invalid.
        """
        discarded: list[list[str]] = [[] for _ in calls]
        samples: dict[int, Sample] = {}
        for _ in range(MAX_TRIES):
            todo = [i for i in range(len(calls)) if i not in samples]
            for i, (raw_us, value, reason) in zip(todo, self.time_once(calls, todo), strict=True):
                if reason is None:
                    samples[i] = Sample(raw_us, value, tuple(discarded[i]))
                else:
                    discarded[i].append(reason)
            if len(samples) == len(calls):
                return [samples[i] for i in range(len(calls))]
        self.reset()
        raise UnstableTiming(max(discarded, key=len))

    def sample(self, act: Callable[[], Any]) -> Sample:
        """Return a valid sample of one call without setup or output copy."""
        return self.run([TimedCall(act)])[0]

    @abstractmethod
    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        """Time each of the calls whose index is in `todo` once."""

    def reset(self) -> None:  # noqa: B027 (most timers have no state)
        """Reset what the timer has learnt; called when a call has no valid sample."""

    def synchronize(self) -> None:
        """Wait until the GPU is idle."""
        torch.cuda.synchronize()

    def calibrate(self, tiny_kernel_us: Mapping[str, float]) -> Calibration:
        """Measure the time that this timer adds to a call.

        The time differs between processes, 2.3 to 2.6 us on an H200. It is about 0.1 us more for a
        kernel that stores than for one that does not, unless a profiler is attached. All timed
        kernels store, so the calibration uses a kernel that stores.

        Args:
            tiny_kernel_us: time of each of `tiny_kernels` by CUPTI, microseconds; empty if unknown.
        """
        kernels = tiny_kernels()
        for act in kernels.values():
            act()
        self.synchronize()
        samples = self.run([TimedCall(act) for act in kernels.values()] * CALIBRATION_SAMPLES)
        raw = [s.raw_us for s in samples]
        by_name = {n: stats.middle_mean(raw[i :: len(kernels)]) for i, n in enumerate(kernels)}
        added_us = by_name[STORE] - tiny_kernel_us[STORE] if STORE in tiny_kernel_us else None
        return Calibration(
            floor_us=by_name[EMPTY],
            added_us=None if added_us is None else max(added_us, 0.0),
            tick_us=stats.clock_tick_us(raw),
        )


class Calibration(NamedTuple):
    """The calibration of a timer on this GPU, in microseconds.

    Attributes:
        floor_us: time of an empty kernel by this timer.
        added_us: time that the timer adds to a call; None if the kernels' own times are unknown.
        tick_us: step of its clock; None if the clock never moved.
    """

    floor_us: float
    added_us: float | None
    tick_us: float | None


@dataclass(frozen=True)
class CalibratedTimer:
    """A timer with its calibration, in microseconds."""

    base: Timer
    added_us: float | None
    tick_us: float | None
    floor_us: float | None = None

    def net_us(self, raw_us: Sequence[float]) -> tuple[float, ...]:
        """Return the times without the time that the timer adds; at least 0.01 us each."""
        return tuple(max(raw - (self.added_us or 0.0), 0.01) for raw in raw_us)


@dataclass
class Gate:
    """The length of one caller's gate: the host time to queue a call, with a margin.

    Source: TCP's retransmission timeout, the mean plus four mean deviations (RFC 6298).
    """

    us: float = 100.0
    _mean_us: float | None = None
    _deviation_us: float = 0.0

    @property
    def cycles(self) -> int:
        """Return the length in cycles of the GPU's clock."""
        return int(self.us * CYCLES_PER_US)

    def record_host_time(self, host_us: float, *, closed: bool) -> None:
        """Update the length from one call.

        An outlier counts as twice the gate at most, so that it does not slow all later calls.

        Args:
            host_us: host time to queue the call, microseconds.
            closed: whether the gate was still closed after that time.
        """
        host_us = min(host_us, 2 * self.us)
        if self._mean_us is None:
            self._mean_us, self._deviation_us = host_us, host_us / 4
        else:
            off_us = host_us - self._mean_us
            self._mean_us += off_us / 8
            self._deviation_us += (abs(off_us) - self._deviation_us) / 4
        wanted_us = max(self._mean_us + 4 * self._deviation_us, MIN_GATE_MARGIN * self._mean_us)
        self.us = wanted_us if closed else max(wanted_us, 2 * self.us)
        self.us = min(max(self.us, MIN_GATE_US), MAX_GATE_US)


class GatedTimer(Timer):
    """Time calls behind a gate, a spin on the GPU, so that the host queues all work beforehand.

    The sequence is: spin, fill the inputs, flush the L2, start event, call, end event. A sample is
    valid only if the spin had not ended when the end event was queued, and nothing was compiled or
    allocated meanwhile. Only the copy of the output and the next call's `before_gate` are queued
    behind a call: on an H200 further queued calls add 0.3 to 1.2 us to it.
    """

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        self.cold = cold
        self._gates: dict[tuple[Hashable, bool], Gate] = {}
        self._flush = make_l2_flush(l2_bytes)
        self._persisting_l2 = PersistingL2()
        self._device = torch.cuda.current_device()
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._opened = torch.cuda.Event()
        self._elapsed_ms = type(self._start).elapsed_time  # a call may replace the function
        self.compiled = 0
        self._count_compiles()

    def _count_compiles(self) -> None:
        def count() -> None:
            self.compiled += 1

        for runtime in languages.used_runtimes():
            runtime.on_compile(count)

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        """Time the calls one after the other, each from an idle GPU."""
        before = self.compiled, count_device_allocations()
        chosen = [calls[i] for i in todo]
        ahead = [call.before_gate for call in chosen[1:]] + [_do_nothing]
        tried = [
            self._time_call(call, first=not n, ahead=ahead[n]) for n, call in enumerate(chosen)
        ]
        reason = disturbance(before, (self.compiled, count_device_allocations()))
        return [
            one._replace(reason=reason or (None if closed else HOST_TOO_SLOW))
            for one, closed in tried
        ]

    def reset(self) -> None:
        """Reset all gates to the initial length."""
        self._gates.clear()

    def _time_call(
        self, call: TimedCall, *, first: bool, ahead: Callable[[], None]
    ) -> tuple[TimedAttempt, bool]:
        """Time a call; return it and whether the gate was closed until all of it was queued.

        Args:
            call: the call.
            first: whether another caller's call came before; host time is longer then, so first
                calls have a gate of their own.
            ahead: the next call's `before_gate`.
        """
        stream = torch.cuda.current_stream(self._device)
        start, end, opened = self._start, self._end, self._opened
        gate = self._gates.setdefault((call.gate_key, first), Gate())
        if first:
            call.before_gate()
        if self.cold:
            self._persisting_l2.reset()
        start_s = time.perf_counter()
        torch.cuda._sleep(gate.cycles)
        opened.record(stream)
        call.fill_inputs()
        if self.cold:
            self._flush()
        start.record(stream)
        value = call.function()
        end.record(stream)
        closed = not opened.query()
        gate.record_host_time(1e6 * (time.perf_counter() - start_s), closed=closed)
        torch.cuda.set_stream(stream)  # a call may leave another stream current
        output = call.copy_output(value)
        del value  # `ahead` poisons its memory
        ahead()
        torch.cuda.synchronize(self._device)
        return TimedAttempt(1e3 * self._elapsed_ms(start, end), output, None), closed


def disturbance(before: tuple[int, int], after: tuple[int, int]) -> str | None:
    """Return why a timing is invalid: something was compiled or allocated meanwhile."""
    if after[0] != before[0]:
        return "compiled meanwhile"
    return "GPU memory was allocated meanwhile" if after[1] != before[1] else None


def make_l2_flush(l2_bytes: int) -> Callable[[], None]:
    """Return a function that flushes the L2: it reads twice its size.

    The reads write dirty lines back, so the timed call causes no write-back.
    """
    read = torch.zeros(FLUSH_L2_SIZES * l2_bytes // 4, device=GPU)
    sink = torch.empty((), device=GPU)

    def flush() -> None:
        torch.sum(read, dim=0, out=sink)

    return flush


def tiny_kernels() -> dict[str, Callable[[], None]]:
    """Return an empty kernel and one that stores 64 KiB, at a new address in each call.

    The time of a store depends on its address, by up to 0.4 us on an H200.
    """
    pages = torch.zeros(CALIBRATION_SAMPLES, STORE_STRIDE_FLOATS, device=GPU)
    page, kernels = itertools.cycle(pages.unbind()), languages.instruments()
    return {
        EMPTY: lambda: kernels.empty(pages),
        STORE: lambda: kernels.store(next(page)),
    }


def count_device_allocations() -> int:
    """Return how often memory was requested from the driver so far."""
    # As a nested dict: flattening it costs more than a short kernel's whole run.
    return int(torch.cuda.memory_stats_as_nested_dict().get("num_device_alloc", 0))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage once, then disable collection in the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
