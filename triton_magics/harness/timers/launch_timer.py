"""Time calls by the host's clock, Python and launch overhead included."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from triton_magics.harness.timers.gated_timer import (
    MAX_CALLS,
    GatedTimer,
    TimedAttempt,
    TimedCall,
    count_device_allocations,
    disturbance,
)
from triton_magics.model import Clock


class LaunchTimer(GatedTimer):
    """Time calls by the host's clock, from an idle GPU until the GPU has finished the call."""

    clock: Clock = "launch"

    def calls_per_run(self, raw_us: float, sets: int) -> int:
        """Return the maximum: host time varies however long the GPU time is."""
        return MAX_CALLS

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        """Time the calls one after the other; the GPU is idle before each."""
        before = self.compiled, count_device_allocations()
        attempts = [self._time_by_host(calls[i]) for i in todo]
        reason = disturbance(before, (self.compiled, count_device_allocations()))
        return [one._replace(reason=reason) for one in attempts]

    def _time_by_host(self, call: TimedCall) -> TimedAttempt:
        done = torch.cuda.Event()
        call.before_gate()
        if self.cold:
            self._persisting_l2.reset()
        call.fill_inputs()
        if self.cold:
            self._flush()
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        value = call.function()
        done.record()
        while not done.query():  # waiting in the driver would add tens of microseconds
            pass
        raw_us = 1e6 * (time.perf_counter() - start_s)
        return TimedAttempt(raw_us, call.copy_output(value), None)
