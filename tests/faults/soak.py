"""A thousand jobs, a tenth of them faulty, in a seeded order: nothing grows, all is judged right.

    make soak                                   (1,000 jobs)
    python tests/faults/soak.py --jobs 30

Ends with 1 where a verdict was wrong, or where memory, descriptors or processes have grown.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.engine_harness import MARK, wait_until
from tests.faults.engine.fault_lab import FILES, Fault, FaultLab, verdict
from triton_magics.config import LOCKS

FAULTY = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
# Beside what a process may still fill at leisure (caches, the store's pages).
MAY_GROW_MIB = 32
# What takes longest is left to the tests that look at each fault by itself.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes")


@dataclass(frozen=True)
class Soaked:
    """What a soak has found.

    Attributes:
        wrong: what was not as it should be, in words.
        grown_mib: of this process, from a tenth of the way to the end.
    """

    jobs: int
    faulty: int
    wrong: tuple[str, ...]
    grown_mib: float
    descriptors: int
    seconds: float


def soak(jobs: int, seed: int, folder: Path, mark: str) -> Soaked:
    """Does that many jobs on real workers, and looks at what is left."""
    dice = random.Random(seed)
    faults = FaultLab(folder, mark)
    cells = [Fault(path) for path in FILES if path.stem not in SLOW]
    wrong: list[str] = []
    faulty, begun, at_first = 0, time.monotonic(), 0
    for number in range(jobs):
        if number == jobs // 10:
            at_first = resident_bytes()
        if dice.random() < FAULTY:
            faulty += 1
            wrong += _suffer(faults, dice.choice(cells))
        elif faults.lab.run("relu", "v1", shape=(4, 4)).status != "passed":
            wrong.append(f"job {number}: a right kernel did not pass")
    wait_until(lambda: not faults.strangers(), within_s=5)
    grown = (resident_bytes() - at_first) / MIB
    left = faults.open_descriptors() - faults.descriptors
    if grown > MAY_GROW_MIB:
        wrong.append(f"this process has grown by {grown:.0f} MiB")
    if left > 0:
        wrong.append(f"{left} descriptors were left open")
    if not faults.locks_are_free(LOCKS) or not faults.store_is_intact(jobs):
        wrong.append("a lock is held, or the store is not intact")
    faults.lab.close()
    return Soaked(jobs, faulty, tuple(wrong), grown, left, time.monotonic() - begun)


def _suffer(faults: FaultLab, fault: Fault) -> list[str]:
    value, _ = faults.do(fault)
    if fault.status in ("any", verdict(value)):
        return []
    return [f"{fault.path.stem}: {verdict(value)}, should be {fault.status}"]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ[MARK] = mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        found = soak(given.jobs, given.seed, workspace, mark)
    print(found)
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
