"""Calls by the host's clock: what one costs who makes it, Python and launch included."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from triton_magics.model import Clock
from triton_magics.worker.timers import (
    MAX_CALLS,
    Call,
    GatedTimer,
    Try,
    device_allocations,
    disturbed,
)


class LaunchTimer(GatedTimer):
    """From an idle GPU, by the host's clock, until the GPU has done the call."""

    clock: Clock = "launch"

    def calls_a_run(self, raw_us: float, sets: int) -> int:
        """As many as of the shortest calls: the host's time jitters however long the GPU's is."""
        return MAX_CALLS

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        """One after the other; the GPU is idle before each."""
        before = self.compiled, device_allocations()
        made = [self._by_the_host(calls[i]) for i in todo]
        reason = disturbed(before, (self.compiled, device_allocations()))
        return [one._replace(reason=reason) for one in made]

    def _by_the_host(self, call: Call) -> Try:
        done = torch.cuda.Event()
        call.before()
        call.fresh()
        if self.cold:
            self._flush()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        value = call.act()
        done.record()
        while not done.query():  # to wait in the driver would add tens of microseconds
            pass
        raw_us = 1e6 * (time.perf_counter() - begun)
        return Try(raw_us, call.kept(value), None)
