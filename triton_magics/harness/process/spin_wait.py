"""Wait a moment for a message without giving the core up, unless another process wants it.

A core that has slept runs Python two to three times as slowly for a millisecond, so two processes
that take turns wait without sleeping. Where others want the core, that takes it from them, and from
the process that is waited for (tests/benchmarks/spin_wait.py).
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from triton_magics.execution.cpu_cores import core_share

SPIN_S = 0.005
SPINNING_CORES = 8  # of a lane; with fewer, the processes of a worker alone need them
YIELD_S = 0.0005  # a longer yield: another process has run
PAUSE_S = 0.1


def usable_cores() -> int:
    """Return the number of cores that this process may use, as one of its lane."""
    return min(len(os.sched_getaffinity(0)), core_share())


class SpinWait:
    """Waits of one process.

    A yield lasts a microsecond where the core is not wanted. Once it lasts longer, no wait of the
    next `PAUSE_S` spins.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        give_way: Callable[[], None] = os.sched_yield,
        cores: Callable[[], int] = usable_cores,
    ) -> None:
        """Begin.

        Args:
            clock: returns the time, seconds.
            give_way: lets another process run that wants the core.
            cores: returns the number of cores that this process may use.
        """
        self._clock, self._give_way = clock, give_way
        self._may_spin = cores() >= SPINNING_CORES
        self._paused_until_s = 0.0

    def wait(self, fd: int) -> None:
        """Return once the descriptor is readable, after `SPIN_S`, or when the core is wanted."""
        if not self._may_spin or self._clock() < self._paused_until_s:
            return
        now_s = self._clock()
        poller, until_s = select.poll(), now_s + SPIN_S
        poller.register(fd, select.POLLIN)
        while not poller.poll(0) and now_s < until_s:
            before_s = self._clock()
            self._give_way()
            now_s = self._clock()
            if now_s - before_s > YIELD_S:
                self._paused_until_s = now_s + PAUSE_S
                return


__all__ = ["SpinWait"]
