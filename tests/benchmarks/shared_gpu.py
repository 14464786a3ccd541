"""Time of small kernels in processes that share a GPU, in turn: microseconds for 16 kernels.

    python tests/benchmarks/shared_gpu.py [--json PATH]

Each process launches 16 kernels on 1,000 numbers and copies the last result, again and again, for
0.6 s.
`busy` processes beside them only compute on the CPU.
"""

from __future__ import annotations

import multiprocessing as mp
import statistics
import time
from typing import Any

import torch
from common import report

SECONDS, KERNELS, ELEMENTS = 0.6, 16, 1000
START_S = 9.0  # until every process has its context
RUNS = ((1, 0), (2, 0), (3, 0), (6, 0), (6, 10))


def launch(go: Any, results: Any) -> None:
    """Measure one process's time of a round, microseconds."""
    x = torch.randn(ELEMENTS, device="cuda")
    y = torch.randn(ELEMENTS, device="cuda")
    torch.cuda.synchronize()
    go.wait()
    start_s, rounds = time.perf_counter(), 0
    while time.perf_counter() - start_s < SECONDS:
        for _ in range(KERNELS // 2):
            y = x * 2 + y
        y.cpu()
        rounds += 1
    results.put((time.perf_counter() - start_s) / rounds * 1e6)


def compute(stop: Any) -> None:
    """Keep a core busy."""
    while not stop.is_set():
        for _ in range(1000):
            pass


def measure(n_processes: int, n_busy: int) -> list[float]:
    """Return the time of a round in each process, microseconds."""
    results, go, stop = mp.Queue(), mp.Event(), mp.Event()
    busy = [mp.Process(target=compute, args=(stop,)) for _ in range(n_busy)]
    processes = [mp.Process(target=launch, args=(go, results)) for _ in range(n_processes)]
    for process in (*busy, *processes):
        process.start()
    time.sleep(START_S)
    go.set()
    times = [results.get() for _ in processes]
    stop.set()
    for process in (*busy, *processes):
        process.join()
    return times


def main() -> None:
    """Print a row for each number of processes."""
    mp.set_start_method("spawn")
    rows = []
    for n_processes, n_busy in RUNS:
        times = measure(n_processes, n_busy)
        rows.append({
            "processes": n_processes, "busy": n_busy,
            "us a round": statistics.median(times), "most": max(times),
        })  # fmt: skip
    report("Small kernels of processes that share a GPU", rows)


if __name__ == "__main__":
    main()
