"""One timed call on a GPU, with the host, the caches and the compiler kept out of the number."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from triton_magics import stats

GATE_CYCLES = 200_000  # about 0.1 ms on an H200
MAX_GATE_CYCLES = 200_000_000
FLUSH_L2S = 2
MAX_TRIES = 4
FLOOR_SAMPLES = 40


@triton.jit
def _empty(x_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    pass


@triton.jit
def _touch(x_ptr, y_ptr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@dataclass(frozen=True)
class Sample:
    """One call: microseconds between the events around it, and its output."""

    raw_us: float
    value: Any
    discarded: tuple[str, ...]


class Unstable(Exception):
    """No valid sample in `MAX_TRIES`; the message counts the reasons."""


class GatedTimer:
    """Times calls behind a spin on the GPU, so that the host has queued all before it starts.

    Each sample: flush the L2 (write, then read another buffer, so that no write-back is left to the
    timed call), spin, start event, call, end event. It is valid only if the spin had not ended when
    the end event was queued, and nothing was compiled or allocated meanwhile.
    """

    def __init__(self, l2_bytes: int, *, cold: bool) -> None:
        self.cold = cold
        self._cycles = GATE_CYCLES
        self._flush = flushed(l2_bytes)
        self._compiled = 0
        self._count_compiles()

    def _count_compiles(self) -> None:
        def listener(**kwargs: object) -> None:
            self._compiled += 1

        triton.knobs.compilation.listener = listener

    def sample(self, call: Callable[[], Any], poison: Callable[[], None]) -> Sample:
        """A valid sample of one call.

        Raises:
            Unstable: every try was invalid.
        """
        discarded: list[str] = []
        for _ in range(MAX_TRIES):
            raw_us, value, reason = self._try(call, poison)
            if reason is None:
                return Sample(raw_us, value, tuple(discarded))
            discarded.append(reason)
        reasons = sorted({f"{r} ({discarded.count(r)} times)" for r in discarded})
        raise Unstable(f"no valid run in {MAX_TRIES} tries: {', '.join(reasons)}")

    def _try(
        self, call: Callable[[], Any], poison: Callable[[], None]
    ) -> tuple[float, Any, str | None]:
        start, end, gate = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        poison()
        if self.cold:
            self._flush()
        compiled, allocated = self._compiled, _device_allocations()
        torch.cuda._sleep(self._cycles)
        gate.record()
        start.record()
        value = call()
        end.record()
        closed = not gate.query()
        torch.cuda.synchronize()
        raw_us = 1e3 * start.elapsed_time(end)
        if self._compiled != compiled:
            return raw_us, value, "compiled meanwhile"
        if _device_allocations() != allocated:
            return raw_us, value, "GPU memory was allocated meanwhile"
        if not closed:
            self._cycles = min(2 * self._cycles, MAX_GATE_CYCLES)
            return raw_us, value, "the host was slower than the gate"
        return raw_us, value, None

    def settle(self) -> None:
        """Until the GPU has done all that was asked of it."""
        torch.cuda.synchronize()

    def floor(self, call: Callable[[], None] | None = None) -> tuple[float, float | None]:
        """What an empty kernel (or a tiny one) costs through this timer, and the clock's tick.

        Both in microseconds; the tick is None if the clock never moved.
        """
        call = call or tiny_kernels()["empty"]
        call()
        torch.cuda.synchronize()
        raw = [self.sample(call, lambda: None).raw_us for _ in range(FLOOR_SAMPLES)]
        return stats.middle_mean(raw), stats.clock_tick_us(raw)


def flushed(l2_bytes: int) -> Callable[[], None]:
    """What empties the L2: it writes twice its size, then reads another buffer as large."""
    n = FLUSH_L2S * l2_bytes // 4
    written, read = torch.empty(n, device="cuda"), torch.zeros(n, device="cuda")
    sink = torch.empty((), device="cuda")

    def flush() -> None:
        written.fill_(1.0)
        torch.sum(read, dim=0, out=sink)

    return flush


def tiny_kernels() -> dict[str, Callable[[], None]]:
    """A kernel that does nothing, and one block that copies 4 KiB: what a timer is gauged with."""
    x, y = torch.zeros(1024, device="cuda"), torch.zeros(1024, device="cuda")
    return {
        "empty": lambda: _empty[(1,)](x, BLOCK=16) and None,
        "touch": lambda: _touch[(1,)](x, y, BLOCK=1024) and None,
    }


def _device_allocations() -> int:
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
