"""Two processes that take turns, beside busy ones: by how they wait for each other.

    python tests/benchmarks/spin_wait.py [--json PATH] [--seconds 3]

Judge and subject process take turns in each case of a validation. Here each works 2 ms of CPU a turn.
`turns` is how often a second, `busy` the work of the other processes, of what as many idle cores
would let them do. `block` sleeps, `spin` never yields, `adaptive` is `SpinWait`.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from common import report

from triton_magics.harness.process.spin_wait import SpinWait

WORK_S = 0.002
MANY = 16  # cores, so that waits spin on a small machine too
WAITS: dict[str, Callable[[], Callable[[int], None]]] = {
    "block": lambda: lambda fd: None,
    "spin": lambda: SpinWait(give_way=lambda: None, cores=lambda: MANY).wait,
    "adaptive": lambda: SpinWait(cores=lambda: MANY).wait,
}


def work(cpu_s: float) -> None:
    """Use that much CPU time."""
    until_s = time.thread_time() + cpu_s
    while time.thread_time() < until_s:
        pass


def start(run: Callable[[], None]) -> int:
    """Run a function in a fork; return its pid."""

    def child() -> NoReturn:
        try:
            run()
        finally:
            os._exit(0)

    return os.fork() or child()


def be_busy(until_s: float) -> None:
    """Use a core."""
    while time.monotonic() < until_s:
        pass


def take_turns(channel: socket.socket, wait: Callable[[int], None]) -> None:
    """Answer each message after some work."""
    while True:
        wait(channel.fileno())
        if not channel.recv(1):
            return
        work(WORK_S)
        channel.send(b"x")


def measure(how: str, n_busy: int, seconds: float) -> dict[str, object]:
    """Return the turns a second of two processes on the machine's first two cores."""
    until_s = time.monotonic() + seconds
    busy = [start(lambda: be_busy(until_s)) for _ in range(n_busy)]
    here, there = socket.socketpair()

    def other() -> None:
        here.close()
        take_turns(there, WAITS[how]())

    subject, wait, turns = start(other), WAITS[how](), 0
    there.close()
    while time.monotonic() < until_s:
        here.send(b"x")
        wait(here.fileno())
        here.recv(1)
        work(WORK_S)
        turns += 1
    here.close()
    used_s = sum(sum(os.wait4(pid, 0)[2][:2]) for pid in busy)
    os.waitpid(subject, 0)
    return {
        "wait": how, "busy processes": n_busy, "turns": turns / seconds,
        "busy": used_s / (min(n_busy, 2) * seconds) if n_busy else 0.0,
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    rows = [measure(how, n, options.seconds) for n in (0, 1, 2, 4) for how in WAITS]
    report("Two processes that take turns on two cores", rows, load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
