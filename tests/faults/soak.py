"""A thousand jobs, a tenth of them faulty, in a seeded order: nothing grows, all is judged right.

    make soak                                   (1,000 jobs)
    python tests/faults/soak.py --jobs 30 --device gpu --into soak.json

Ends with 1 where a verdict was wrong, or where memory, descriptors or processes have grown.
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

from tests.engine_harness import MARK, marked, wait_until
from tests.faults.engine.fault_lab import FILES, RIGHT, Fault, FaultLab, verdict
from tests.faults.next_job import all_ready, gpu_mib, memory_mib
from triton_magics.config import LOCKS
from triton_magics.engine import gpu
from triton_magics.errors import TritonMagicsError
from triton_magics.worker.lock import is_held

FAULTY = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
SOON_S = 0.5
# Beside what a process may still fill at leisure (caches, the store's pages).
MAY_GROW_MIB = 32
# What takes longest is left to the tests that look at each fault by itself.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes")


@dataclass(frozen=True)
class Soaked:
    """What a soak has found.

    Attributes:
        kinds: how many faults of each kind there were, by the verdict.
        wrong: what was not as it should be, in words.
        before, after: what was in use a tenth of the way, and at the end.
        next_job_s: from the verdict on a fault to the answer of the right job after it.
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
    """What the notebook's process and the engine's take while nothing runs.

    Attributes:
        notebook_mib, nanny_mib: resident.
        engine_mib: nanny, zygotes and workers, without libraries; what they share counted once.
        descriptors: of this process, without those of workers.
        processes: that the engine has.
        gpu_mib: of the GPU's memory; where the driver tells (NVML), only what the engine takes,
            else all that is in use. None without a GPU.
    """

    notebook_mib: float
    nanny_mib: float
    engine_mib: float
    descriptors: int
    processes: int
    gpu_mib: int | None

    @classmethod
    def now(cls, faults: FaultLab) -> Self:
        wait_until(lambda: not faults.strangers() and all_ready(faults), within_s=60)
        pids = faults.crew.pids
        return cls(
            round(resident_mib(os.getpid()), 1),
            round(resident_mib(pids[0]), 1),
            round(memory_mib(pids, "Pss_Anon"), 1),
            faults.open_descriptors(),
            len(pids),
            own_gpu_mib(pids) or gpu_mib(),
        )

    def grown(self, before: Use) -> list[str]:
        """What has grown by more than a process may fill at leisure, in words."""
        said = []
        if self.notebook_mib - before.notebook_mib > MAY_GROW_MIB:
            said.append(f"the notebook has grown from {before.notebook_mib} MiB to {self}")
        if self.nanny_mib - before.nanny_mib > MAY_GROW_MIB / 4:
            said.append(f"the nanny has grown from {before.nanny_mib} MiB to {self}")
        if self.descriptors > before.descriptors or self.processes > before.processes:
            said.append(f"descriptors or processes are left: {before} and {self}")
        if (self.gpu_mib or 0) - (before.gpu_mib or 0) > MAY_GROW_MIB:
            said.append(f"GPU memory is left: {before} and {self}")
        return said


def soak(
    jobs: int,
    seed: int,
    folder: Path,
    mark: str,
    device: str = "interpreter",
    within_s: float = math.inf,
) -> Soaked:
    """Does that many jobs on real workers, or as many as there is time for; looks what is left."""
    dice = random.Random(seed)
    faults = FaultLab(folder, mark, device)
    try:
        return _soaked(faults, dice, jobs, mark, within_s)
    finally:
        faults.lab.close()


def _soaked(faults: FaultLab, dice: random.Random, jobs: int, mark: str, within_s: float) -> Soaked:
    own_gpu_mib(())  # opens what NVML keeps open
    faults.lab.write("relu", "v1", RIGHT)  # the cross-compiler's workers are there from the start
    cells = shuffled([Fault(path) for path in FILES if path.stem not in SLOW], dice)
    wrong: list[str] = []
    kinds: Counter[str] = Counter()
    next_s: list[float] = []
    slow: dict[str, float] = {}
    begun, before, last = time.monotonic(), None, ""
    for number in range(jobs):
        if time.monotonic() - begun > within_s:
            jobs = number
            break
        if number == jobs // 10:
            before = Use.now(faults)
        if dice.random() < FAULTY:
            fault = next(cells)
            last = fault.path.stem
            status = faults.expected(fault)
            try:
                given = verdict(faults.do(fault)[0])
            except TritonMagicsError as error:
                given = f"{type(error).__name__}: {error}"
            print(number, last, given, flush=True)  # should it not settle
            kinds[given] += 1
            if status not in ("any", given):
                wrong.append(f"{last}: {given}, should be {status}")
        else:
            asked = time.monotonic()
            if faults.lab.run("relu", "v1", shape=(4, 4)).status != "passed":
                wrong.append(f"job {number}: a right kernel did not pass")
            if last:
                next_s.append(time.monotonic() - asked)
                slow |= {last: round(next_s[-1], 2)} if next_s[-1] > SOON_S else {}
            last = ""
    after = Use.now(faults)
    wrong += after.grown(before or after)
    if own_tickets(mark) or not faults.store_is_intact(jobs):
        wrong.append("a lock is held, or the store is not intact")
    next_job_s = {"median": round(statistics.median(next_s), 3), "longest": round(max(next_s), 3)}
    return Soaked(
        jobs, kinds.total(), dict(kinds), tuple(wrong), before or after, after, next_job_s, slow,
        round(time.monotonic() - begun, 1),
    )  # fmt: skip


def shuffled(cells: list[Fault], dice: random.Random) -> Iterator[Fault]:
    """Each once before any comes again, in an order of the dice's."""
    while True:
        yield from dice.sample(cells, len(cells))


def own_tickets(mark: str) -> list[str]:
    """The locks of GPUs that processes with this mark hold or wait for; others may use the GPU."""
    pids = set(marked(mark))
    tickets = [path for path in LOCKS.glob("*.*-*") if is_held(path)]
    return [path.name for path in tickets if int(path.name.rpartition("-")[2]) in pids]


def own_gpu_mib(pids: tuple[int, ...]) -> int | None:
    """What these processes take of the GPU's memory; None where NVML does not tell."""
    found = gpu.memory_of(pids)
    return None if found is None else found // MIB


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / MIB


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--within", type=float, default=math.inf, help="seconds")
    parser.add_argument("--into", type=Path, help="a JSON file of what was found")
    given = parser.parse_args()
    into = given.into and given.into.absolute()
    os.environ[MARK] = mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        found = soak(given.jobs, given.seed, workspace, mark, given.device, given.within)
    print(found)
    if into:
        into.write_text(json.dumps(dataclasses.asdict(found), indent=1) + "\n")
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
