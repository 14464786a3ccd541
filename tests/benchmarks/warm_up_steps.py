"""CPU time of a worker's warm-up by step, in the judge and in the subject process.

    python tests/benchmarks/warm_up_steps.py [--json PATH] [--at-once 1,4] [--repeats 3]
    python tests/benchmarks/warm_up_steps.py --blocking     (waits for the GPU sleep, and use no core)
    TRITON_INTERPRET=1 python tests/benchmarks/warm_up_steps.py --mode interpreter    (without a GPU)

Each worker is forked as the fork server forks it. `judge` and `subject` are CPU seconds, `system` those
of both in the kernel, such as the driver's. `fork` starts the compile processes and the subject
process, `context` creates both CUDA contexts, `rest` is what no step has. `--at-once` warms up so
many workers at the same time. Figures are medians over all workers.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import resource
import socket
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from common import report

from triton_magics import languages
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.scratch import variables
from triton_magics.harness import warm_up
from triton_magics.harness.correctness import remote_calls
from triton_magics.harness.process import compile_processes, device, subject_process
from triton_magics.harness.process.subject_link import SubjectLink

BLOCKING_SYNC = 4  # CU_CTX_SCHED_BLOCKING_SYNC
COLUMNS = ("wall s", "judge s", "subject s", "system s")
Row = tuple[float, float, float, float]  # COLUMNS


class Steps:
    """The costs of steps, each since the end of the one before."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.link: SubjectLink | None = None
        self._last = self._now()

    def _now(self) -> Row:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        user_s, system_s = process_times_s(self.link.pid) if self.link else (0.0, 0.0)
        judge_s = usage.ru_utime + usage.ru_stime
        return time.perf_counter(), judge_s, user_s + system_s, usage.ru_stime + system_s

    def end(self, name: str) -> None:
        """Write down what a step has cost."""
        now = self._now()
        self.rows[name] = tuple(b - a for a, b in zip(self._last, now, strict=True))  # type: ignore[assignment]
        self._last = now


def process_times_s(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, in its own code and in the kernel."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def sleep_while_the_gpu_works() -> None:
    """Have this process sleep where it waits for the GPU; call it before the context."""
    driver = ctypes.CDLL("libcuda.so.1")
    assert driver.cuInit(0) == 0
    assert driver.cuDevicePrimaryCtxSetFlags_v2(0, BLOCKING_SYNC) == 0


def warm_worker(mode: Mode, *, blocking: bool) -> dict[str, Row]:
    """Warm this process and a subject process up as a worker does; return the costs."""
    steps = Steps()
    compile_processes.start_compile_processes(lambda order: None)
    unused, _ = socket.socketpair()

    def create_context() -> None:
        if blocking:
            sleep_while_the_gpu_works()
        device.create_context(mode)

    def prepare() -> None:
        create_context()
        remote_calls.name_record()

    link = steps.link = subject_process.start(prepare, close=unused.fileno())
    steps.end("fork")
    create_context()
    where = device.GPU if mode == "gpu" else device.CPU
    assert subject_process.can_share(link, where)
    steps.end("context")
    number = itertools.count(1)
    for all_steps in (warm_up.STEPS, warm_up.TIMING_STEPS):
        all_steps[mode] = tuple(
            measure_step(step, f"{next(number)} {label(step)}", steps)
            for step in all_steps.get(mode, ())
        )
    assert warm_up.run(mode)
    steps.end("rest")
    compile_processes.wait_for_exit()
    return steps.rows


def measure_step(step: Callable[..., None], name: str, steps: Steps) -> Callable[..., None]:
    """Return a step that writes its cost down; before the first, that of its preparation."""

    def run(sample: Any) -> None:
        steps.end(f"before {name.partition(' ')[0]}")
        step(sample)
        steps.end(name)

    return run


def label(step: Any) -> str:
    """Return the name of a step with its dtype or sizes."""
    own = [step.keywords.get("dtype"), *step.keywords.get("sizes", ())]
    return " ".join([step.func.__name__.strip("_"), *filter(None, own)])


def start(mode: Mode, *, blocking: bool) -> tuple[int, int]:
    """Fork a worker that warms up; return its pid and a pipe with its costs."""
    here, there = os.pipe()
    if child := os.fork():
        os.close(there)
        return child, here
    try:
        scratch = tempfile.mkdtemp()
        os.environ |= variables(scratch)
        languages.set_worker_environment(mode, scratch)
        os.write(there, json.dumps(warm_worker(mode, blocking=blocking)).encode())
    except BaseException:  # noqa: BLE001 (the process ends here: report the reason)
        traceback.print_exc()
    finally:
        os._exit(0)


def main() -> None:
    """Print a table for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--mode", choices=("gpu", "interpreter"), default="gpu")
    parser.add_argument("--at-once", default="1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--blocking", action="store_true")
    options = parser.parse_args()
    warm_up.prepare()
    rows = []
    for at_once in map(int, options.at_once.split(",")):
        costs = []
        for number in range(options.repeats + 1):
            workers = [start(options.mode, blocking=options.blocking) for _ in range(at_once)]
            for pid, pipe in workers:
                with os.fdopen(pipe) as file:
                    costs += [json.loads(file.read())] if number else []  # the first fills caches
                os.waitpid(pid, 0)
        for name in costs[0]:
            medians = [statistics.median(cost[name][i] for cost in costs) for i in range(4)]
            row = dict(zip(COLUMNS, (round(m, 3) for m in medians), strict=True))
            rows.append({"step": name, "at once": at_once, **row})
        whole = [sum(r[c] for r in rows if r["at once"] == at_once) for c in COLUMNS]
        rows.append({"step": "all", "at once": at_once, **dict(zip(COLUMNS, whole, strict=True))})
    report("A worker's warm-up", rows, mode=options.mode, blocking=options.blocking)


if __name__ == "__main__":
    main()
