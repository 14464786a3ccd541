"""Time that a worker waited for a CPU that programs outside it used: it counts for no deadline."""

from __future__ import annotations

import time

from triton_magics.execution.local.supervisor.process_table import list_folder, tree

INTERVAL_S = 1.0
Times = dict[tuple[int, str], tuple[int, int]]  # (process, thread): on a CPU, waiting for one; ns


class CpuWait:
    """Reads how long the processes of a worker waited for a CPU.

    Linux counts it for each thread. On a kernel that does not, it is always 0.

    Args:
        pid: the worker; its descendants count with it.
        interval_s: shortest time between two readings, seconds.
    """

    def __init__(self, pid: int | None, interval_s: float = INTERVAL_S) -> None:
        self._pid = pid
        self._interval_s = min(interval_s, INTERVAL_S)
        self._read_at = time.monotonic()
        self._times = _read(pid)

    def take(self, *, at_once: bool = False) -> float:
        """Return the seconds since the last reading; 0 before the interval is over.

        Args:
            at_once: read them before the end of the interval too.
        """
        now = time.monotonic()
        if not at_once and now - self._read_at < self._interval_s:
            return 0.0
        times = _read(self._pid)
        on_cpu_s, waiting_s = _difference(times, self._times)
        waited_s = waited_for_others(now - self._read_at, on_cpu_s, waiting_s)
        self._times, self._read_at = times, now
        return waited_s


def waited_for_others(wall_s: float, on_cpu_s: float, waiting_s: float) -> float:
    """Return the part of an interval in which threads could not run, seconds.

    Threads that keep each other from the CPUs have waited for no one else: the time that they had
    on CPUs, all together, is always their own.

    Args:
        wall_s: length of the interval.
        on_cpu_s: sum of the threads' time on a CPU.
        waiting_s: sum of the threads' time in the queue for one.
    """
    return max(0.0, min(waiting_s, wall_s - on_cpu_s))


def _read(pid: int | None) -> Times:
    times: Times = {}
    for process in tree({pid}) if pid else ():
        for thread in list_folder(f"/proc/{process}/task"):
            try:
                with open(f"/proc/{process}/task/{thread}/schedstat") as file:
                    on_cpu, waiting, _ = file.read().split()
            except (OSError, ValueError):  # it has ended, or the kernel counts nothing
                continue
            times[process, thread] = int(on_cpu), int(waiting)
    return times


def _difference(now: Times, before: Times) -> tuple[float, float]:
    """Return the sums of time on a CPU and of time waiting for one, seconds."""
    pairs = [(each, before.get(thread, (0, 0))) for thread, each in now.items()]
    return (
        sum(each[0] - last[0] for each, last in pairs) / 1e9,
        sum(each[1] - last[1] for each, last in pairs) / 1e9,
    )


__all__ = ["CpuWait", "waited_for_others"]
