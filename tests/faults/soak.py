"""Run a thousand jobs, a tenth of them faulty, in a seeded order, and check that nothing grows.

    make soak                                   (1,000 jobs)
    python tests/faults/soak.py --jobs 1000 --device gpu --sandbox on --into soak.json
    python tests/faults/soak.py --jobs 1000 --labs 3 ...     (three labs at the same time: sooner)

Only the soak's own processes are looked at, so others may use the machine and its GPU. GPU memory
counts where NVML reports it by process; in most containers it does not, and then only `--alone`
compares all memory that is in use on the GPU.

Ends with 1 if a verdict was wrong, or if memory, descriptors or processes have grown. The file of
`--into` is written every 50 jobs, so a soak that is stopped leaves what it has seen ("is_done" is
false). In a sandbox many faults get another verdict; then any verdict counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FILES, RIGHT, VERDICTS, Fault, FaultLab, shown, verdict
from tests.faults.next_job import all_ready, gpu_mib, memory_mib
from triton_magics.config import LOCKS
from triton_magics.errors import TritonMagicsError
from triton_magics.execution.local import gpu_detection
from triton_magics.harness.process.gpu_lock import is_held

FAULTY = 0.1
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
SOON_S = 0.5
SAVE_EVERY = 50
# A process may still fill its caches and the store's pages.
MAY_GROW_MIB = 32
# The slowest faults are left to the tests of single faults.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes")


@dataclass(frozen=True)
class SoakResult:
    """The result of a soak.

    Attributes:
        is_done: False in the file of a soak that is still running, or was stopped.
        kinds: the number of faults by verdict.
        wrong: the deviations, in words.
        before, after: the resources in use after a tenth of the jobs, and at the end; None if
            the soak was stopped before.
        next_job_s: from the verdict on a fault to the result of the right job after it.
        slow_after: the faults after which that took more than half a second.
    """

    jobs: int
    faulty: int
    kinds: dict[str, int]
    wrong: tuple[str, ...]
    before: Use | None
    after: Use | None
    next_job_s: dict[str, float]
    slow_after: dict[str, float]
    seconds: float
    is_done: bool = True


@dataclass(frozen=True)
class Use:
    """The resources of the notebook's process and the executor's processes while nothing runs.

    Attributes:
        notebook_mib, supervisor_mib: resident memory.
        engine_mib: memory of supervisor, fork servers and workers, without libraries; shared
            pages count once.
        descriptors: of this process, without those of workers.
        processes: number of the executor's processes.
        gpu_mib: GPU memory of the executor's processes, if NVML reports it by process; else None,
            or, if the soak is alone on the GPU, all that is in use.
    """

    notebook_mib: float
    supervisor_mib: float
    engine_mib: float
    descriptors: int
    processes: int
    gpu_mib: int | None

    @classmethod
    def now(cls, faults: FaultLab, *, is_alone: bool = False) -> Self:
        """Measure, once the workers are ready; `is_alone`: nothing else uses the GPU."""
        wait_until(lambda: not faults.strangers() and all_ready(faults), within_s=60)
        pids = faults.pool.pids
        return cls(
            round(resident_mib(os.getpid()), 1),
            round(resident_mib(pids[0]), 1),
            round(memory_mib(pids, "Pss_Anon"), 1),
            faults.open_descriptors(),
            len(pids),
            own_gpu_mib(pids) or (gpu_mib() if is_alone else None),
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
    sandbox: str = "off",
    into: Path | None = None,
    *,
    is_alone: bool = False,
) -> SoakResult:
    """Run that many jobs on real workers, or as many as fit into the time; check what is left."""
    faults = FaultLab(folder, process_tag, device, sandbox=sandbox)
    any_verdict, dice = sandbox == "on", random.Random(seed)
    try:
        own = Soak(faults, dice, into, any_verdict=any_verdict, is_alone=is_alone)
        return own.run(jobs, process_tag, within_s)
    finally:
        faults.lab.close()


class Soak:
    """The jobs of a soak and what they have shown so far.

    Args:
        into: the file that gets the result, and every 50 jobs the result so far.
        any_verdict: a fault may get any verdict, since a sandbox refuses many of them.
        is_alone: nothing else uses the GPU.
    """

    def __init__(
        self,
        faults: FaultLab,
        dice: random.Random,
        into: Path | None,
        *,
        any_verdict: bool,
        is_alone: bool = False,
    ) -> None:
        self._faults, self._dice, self._into = faults, dice, into
        self._any_verdict, self._is_alone = any_verdict, is_alone
        self._cells = repeat_shuffled([Fault(p) for p in FILES if p.stem not in SLOW], dice)
        self._wrong: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._next_s: list[float] = []
        self._slow: dict[str, float] = {}
        self._before: Use | None = None
        self._after: Use | None = None
        self._start_s = time.monotonic()

    def run(self, jobs: int, process_tag: str, within_s: float) -> SoakResult:
        own_gpu_mib(())  # NVML opens descriptors that stay open
        self._faults.lab.write("relu", "v1", RIGHT)  # starts the cross-compiler's workers
        last = ""
        for number in range(jobs):
            if time.monotonic() - self._start_s > within_s:
                jobs = number
                break
            if number == jobs // 10:
                self._before = Use.now(self._faults, is_alone=self._is_alone)
            if number % SAVE_EVERY == 0:
                self.result(number, is_done=False)
            try:
                last = self._do(number, last)
            except (TritonMagicsError, AssertionError) as error:
                self._wrong.append(f"job {number}, after {last}: {type(error).__name__}: {error}")
        try:
            self._after = Use.now(self._faults, is_alone=self._is_alone)
        except AssertionError:
            self._wrong.append(f"left after a minute: {self._faults.strangers()}")
        else:
            self._wrong += self._after.describe_growth(self._before or self._after)
        if own_tickets(process_tag) or not self._faults.store_is_intact(jobs):
            self._wrong.append("a lock is held, or the store is not intact")
        return self.result(jobs, is_done=True)

    def _do(self, number: int, last: str) -> str:
        """Do one job; return the fault's name, or nothing."""
        if self._dice.random() < FAULTY:
            return self._do_fault(number, next(self._cells))
        request_s = time.monotonic()
        result = self._faults.lab.run("relu", "v1", shape=(4, 4))
        if result.status != "passed":
            self._wrong.append(f"job {number}, after {last}: {shown(result)[:1500]}")
        if last:
            self._next_s.append(time.monotonic() - request_s)
            if self._next_s[-1] > SOON_S:
                self._slow[last] = round(self._next_s[-1], 2)
        return ""

    def _do_fault(self, number: int, fault: Fault) -> str:
        name, expected = fault.path.stem, self._faults.expected_status(fault)
        try:
            actual = verdict(self._faults.do(fault)[0])
        except TritonMagicsError as error:
            actual = f"{type(error).__name__}: {error}"
        print(number, name, actual, flush=True)  # shows the fault if the next wait times out
        self._kinds[actual] += 1
        is_right = actual in VERDICTS if self._any_verdict else expected in ("any", actual)
        if not is_right:
            self._wrong.append(f"{name}: {actual}, should be {expected}")
        return name

    def result(self, jobs: int, *, is_done: bool) -> SoakResult:
        """Return the result after that many jobs, and write it to the file."""
        next_job_s = {
            "median": round(statistics.median(self._next_s), 3),
            "longest": round(max(self._next_s), 3),
        } if self._next_s else {}  # fmt: skip
        result = SoakResult(
            jobs, self._kinds.total(), dict(self._kinds), tuple(self._wrong), self._before,
            self._after, next_job_s, dict(self._slow),
            round(time.monotonic() - self._start_s, 1), is_done,
        )  # fmt: skip
        if self._into:
            half = self._into.with_suffix(".part")
            half.write_text(json.dumps(dataclasses.asdict(result), indent=1) + "\n")
            half.replace(self._into)
        return result


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


def soak_at_once(labs: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Share the jobs among so many soaks, each a process of its own; return their results."""
    share = -(-options.jobs // labs)
    common = ["--jobs", str(share), "--device", options.device, "--sandbox", options.sandbox]
    common += ["--within", str(options.within)]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, f"{number}.json") for number in range(labs)]
        soaks = [
            subprocess.Popen(
                [sys.executable, __file__, *common, "--seed", str(options.seed + i), "--into", file]
            )
            for i, file in enumerate(files)
        ]
        ends = [process.wait() for process in soaks]
        results = [json.loads(file.read_text()) if file.exists() else {} for file in files]
    for result, end in zip(results, ends, strict=True):
        if not result.get("is_done"):
            result["wrong"] = [*result.get("wrong", ()), f"it ended early, with {end}"]
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="interpreter", choices=("interpreter", "gpu"))
    parser.add_argument("--sandbox", default="off", choices=("off", "on"))
    parser.add_argument("--within", type=float, default=math.inf, help="seconds")
    parser.add_argument("--into", type=Path, help="a JSON file of the result")
    parser.add_argument("--alone", action="store_true", help="nothing else uses the GPU")
    parser.add_argument("--labs", type=int, default=1, help="soaks at the same time")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    if options.labs > 1:
        results = soak_at_once(options.labs, options)
        print(json.dumps(results, indent=1))
        if into:
            into.write_text(json.dumps(results, indent=1) + "\n")
        return int(any(result["wrong"] for result in results))
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        result = soak(
            options.jobs, options.seed, workspace, process_tag, options.device, options.within,
            options.sandbox, into, is_alone=options.alone,
        )  # fmt: skip
        os.chdir("/")
    print(result)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
