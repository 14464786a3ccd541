"""Run a thousand jobs, a tenth of them faulty, in a seeded order, and check that nothing grows.

    make soak                                   (1,000 jobs)
    python tests/faults/soak.py --jobs 30 --device gpu --into soak.json

Ends with 1 if a verdict was wrong, or if memory, descriptors or processes have grown.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FILES, RIGHT, Fault, FaultLab, verdict
from tests.faults.next_job import all_ready, gpu_mib, memory_mib
from triton_magics.config import LOCKS
from triton_magics.errors import TritonMagicsError
from triton_magics.execution.local import gpu_detection
from triton_magics.harness.process.gpu_lock import is_held

FAULTY = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
SOON_S = 0.5
# A process may still fill its caches and the store's pages.
MAY_GROW_MIB = 32
# The slowest faults are left to the tests of single faults.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes")


@dataclass(frozen=True)
class SoakResult:
    """The result of a soak.

    Attributes:
        kinds: the number of faults by verdict.
        wrong: the deviations, in words.
        before, after: the resources in use after a tenth of the jobs, and at the end.
        next_job_s: from the verdict on a fault to the result of the right job after it.
        slow_after: the faults after which that took more than half a second.
    """

    jobs: int
    faulty: int
    kinds: dict[str, int]
    wrong: tuple[str, ...]
    before: Use
    after: Use
    next_job_s: dict[str, float]
    slow_after: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Use:
    """The resources of the notebook's process and the executor's processes while nothing runs.

    Attributes:
        notebook_mib, supervisor_mib: resident memory.
        engine_mib: memory of supervisor, fork servers and workers, without libraries; shared
            pages count once.
        descriptors: of this process, without those of workers.
        processes: number of the executor's processes.
        gpu_mib: GPU memory of the executor's processes if NVML reports it by process, else all
            that is in use. None without a GPU.
    """

    notebook_mib: float
    supervisor_mib: float
    engine_mib: float
    descriptors: int
    processes: int
    gpu_mib: int | None

    @classmethod
    def now(cls, faults: FaultLab) -> Self:
        """Measure, once the workers are ready."""
        wait_until(lambda: not faults.strangers() and all_ready(faults), within_s=60)
        pids = faults.pool.pids
        return cls(
            round(resident_mib(os.getpid()), 1),
            round(resident_mib(pids[0]), 1),
            round(memory_mib(pids, "Pss_Anon"), 1),
            faults.open_descriptors(),
            len(pids),
            own_gpu_mib(pids) or gpu_mib(),
        )

    def describe_growth(self, before: Use) -> list[str]:
        """Describe each resource that has grown by more than the caches of a process."""
        messages = []
        if self.notebook_mib - before.notebook_mib > MAY_GROW_MIB:
            messages.append(f"the notebook has grown from {before.notebook_mib} MiB to {self}")
        if self.supervisor_mib - before.supervisor_mib > MAY_GROW_MIB / 4:
            messages.append(f"the supervisor has grown from {before.supervisor_mib} MiB to {self}")
        if self.descriptors > before.descriptors or self.processes > before.processes:
            messages.append(f"descriptors or processes are left: {before} and {self}")
        if (self.gpu_mib or 0) - (before.gpu_mib or 0) > MAY_GROW_MIB:
            messages.append(f"GPU memory is left: {before} and {self}")
        return messages


def soak(
    jobs: int,
    seed: int,
    folder: Path,
    process_tag: str,
    device: str = "interpreter",
    within_s: float = math.inf,
) -> SoakResult:
    """Run that many jobs on real workers, or as many as fit into the time; check what is left."""
    dice = random.Random(seed)
    faults = FaultLab(folder, process_tag, device)
    try:
        return _run_jobs(faults, dice, jobs, process_tag, within_s)
    finally:
        faults.lab.close()


def _run_jobs(
    faults: FaultLab, dice: random.Random, jobs: int, process_tag: str, within_s: float
) -> SoakResult:
    own_gpu_mib(())  # NVML opens descriptors that stay open
    faults.lab.write("relu", "v1", RIGHT)  # starts the cross-compiler's workers
    faults_in_turn = repeat_shuffled([Fault(path) for path in FILES if path.stem not in SLOW], dice)
    wrong: list[str] = []
    kinds: Counter[str] = Counter()
    next_s: list[float] = []
    slow: dict[str, float] = {}
    start_s, before, last = time.monotonic(), None, ""
    for number in range(jobs):
        if time.monotonic() - start_s > within_s:
            jobs = number
            break
        if number == jobs // 10:
            before = Use.now(faults)
        if dice.random() < FAULTY:
            fault = next(faults_in_turn)
            last = fault.path.stem
            status = faults.expected_status(fault)
            try:
                actual = verdict(faults.do(fault)[0])
            except TritonMagicsError as error:
                actual = f"{type(error).__name__}: {error}"
            print(number, last, actual, flush=True)  # shows the fault if the next wait times out
            kinds[actual] += 1
            if status not in ("any", actual):
                wrong.append(f"{last}: {actual}, should be {status}")
        else:
            request_s = time.monotonic()
            if faults.lab.run("relu", "v1", shape=(4, 4)).status != "passed":
                wrong.append(f"job {number}: a right kernel did not pass")
            if last:
                next_s.append(time.monotonic() - request_s)
                slow |= {last: round(next_s[-1], 2)} if next_s[-1] > SOON_S else {}
            last = ""
    after = Use.now(faults)
    wrong += after.describe_growth(before or after)
    if own_tickets(process_tag) or not faults.store_is_intact(jobs):
        wrong.append("a lock is held, or the store is not intact")
    next_job_s = {"median": round(statistics.median(next_s), 3), "longest": round(max(next_s), 3)}
    return SoakResult(
        jobs, kinds.total(), dict(kinds), tuple(wrong), before or after, after, next_job_s, slow,
        round(time.monotonic() - start_s, 1),
    )  # fmt: skip


def repeat_shuffled(cells: list[Fault], dice: random.Random) -> Iterator[Fault]:
    """Yield the faults forever, each once in a round, in a random order."""
    while True:
        yield from dice.sample(cells, len(cells))


def own_tickets(process_tag: str) -> list[str]:
    """Return the GPU lock files of processes with this mark; other users' do not count."""
    pids = set(tagged_processes(process_tag))
    tickets = [path for path in LOCKS.glob("*.*-*") if is_held(path)]
    return [path.name for path in tickets if int(path.name.rpartition("-")[2]) in pids]


def own_gpu_mib(pids: tuple[int, ...]) -> int | None:
    """Return the GPU memory of these processes; None if NVML does not report it."""
    used_bytes = gpu_detection.memory_of(pids)
    return None if used_bytes is None else used_bytes // MIB


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / MIB


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--within", type=float, default=math.inf, help="seconds")
    parser.add_argument("--into", type=Path, help="a JSON file of the result")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        result = soak(
            options.jobs, options.seed, workspace, process_tag, options.device, options.within
        )
    print(result)
    if into:
        into.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n")
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
