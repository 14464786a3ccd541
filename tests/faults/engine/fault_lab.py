"""A lab with real workers, one fault at a time in it, and what must hold after each."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from tests.execution_kit import tagged_processes, wait_until
from triton_magics.config import Settings
from triton_magics.execution.local.supervisor.process_table import tree
from triton_magics.lab import Lab
from triton_magics.model import Value
from triton_magics.rendering import to_text, view

CELLS = Path(__file__).parents[1] / "cells"
FILES = sorted(CELLS.glob("*.py"))
CLASSES = (
    "import", "wrapper", "kernel", "exit", "descriptors", "limits", "signals", "memory", "disk",
    "processes", "output", "exceptions", "patches", "clocks", "damage",
)  # fmt: skip
VERDICTS = frozenset(
    {"passed", "failed", "rejected", "runtime_error", "compile_error", "out_of_memory", "timeout",
     "crashed", "skipped", "not_run"}
)  # fmt: skip
NOT_OURS = ("lab.db", "history.sqlite", "anon_inode")
GRACE_S = 5.0  # beside its own time limit, what a fault may cost
RIGHT = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=mask)


def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    return out
"""


@dataclass(frozen=True)
class Fault:
    """A cell and the facts of its docstring."""

    path: Path

    @property
    def source(self) -> str:
        return self.path.read_text()

    def says(self, word: str, default: str) -> str:
        match = re.search(rf"^{word}: (.+)$", self.source, re.M)
        return match[1] if match else default

    @property
    def kind(self) -> str:
        """One of CLASSES."""
        return self.says("class", "")

    @property
    def status(self) -> str:
        """As the verdict names it; `any` where only what comes after it matters."""
        return self.says("status", "")

    @property
    def sees(self) -> str:
        """Pattern of the text that the user must read."""
        return self.says("sees", "")

    @property
    def timeout_s(self) -> float:
        return float(self.says("timeout", "20"))


class FaultLab:
    """A lab on real workers, by default in Triton's interpreter.

    Args:
        folder: its workspace.
        mark: that the environment of its processes carries.
        device: `interpreter` or `gpu`.
        standbys: how many warm workers wait.
        lab: one that is there already, instead of one of its own.
    """

    def __init__(
        self,
        folder: Path,
        process_tag: str,
        device: str = "interpreter",
        standbys: int = 2,
        lab: Lab | None = None,
        sandbox: str = "off",  # it would refuse half of the faults
    ) -> None:
        self.process_tag = process_tag
        self.folder = folder
        memory_gib = 2.0 if device == "interpreter" else 0.0
        settings = Settings(
            device=device, host_memory_gib=memory_gib, standbys=standbys, sandbox=sandbox
        )
        self.lab = lab or Lab(folder, settings=settings)
        self.lab.write("relu", "v1", RIGHT, compile=False)
        assert self.next_job_works()
        self.descriptors = self.open_descriptors()

    def expected_status(self, fault: Fault) -> str:
        """Return its verdict on this device; `any` where only what comes after it matters."""
        on_gpu = self.lab.engine_state().device_kind == "gpu"
        return fault.says("on a gpu", fault.status) if on_gpu else fault.status

    @property
    def pool(self) -> object:
        return self.lab.session.jobs.executor.queue().pool

    def ready(self) -> bool:
        """Return True if a warm worker waits for the next job."""
        return self.lab.engine_state().standby_ready

    def do(self, fault: Fault) -> tuple[Value, float]:
        """Write the cell as an attempt at v2; return its verdict and the seconds that it took."""
        by = fault.says("by", "run")
        if by != "write":
            self.lab.write("relu", "v2", fault.source, compile=False)
            wait_until(self.ready_or_cold, within_s=60)
        started = time.monotonic()
        value = self._ask(by, fault)
        return value, time.monotonic() - started

    def _ask(self, by: str, fault: Fault) -> Value:
        if by == "write":
            return self.lab.write("relu", "v2", fault.source)
        if by == "run":
            return self.lab.run("relu", "v2", shape=(4, 4), timeout=fault.timeout_s)
        return self.lab.validate(
            "relu", "v2", shapes=[(4, 4)], dtypes=["float32"], timeout=fault.timeout_s
        )

    # ------------------------------------------------------------------ what must hold after

    def next_job_works(self) -> bool:
        wait_until(self.ready_or_cold, within_s=60)
        return self.lab.run("relu", "v1", shape=(4, 4)).status == "passed"

    def ready_or_cold(self) -> bool:
        """Return True if a standby is warm, or none is warming up."""
        return self.ready() or not self.pool.is_up or not any(self.pool._standby.values())

    def strangers(self) -> set[int]:
        """Return the processes of this lab beside the supervisor and its workers.

        The compilers of a standby worker do not count; once it has done a job, none is left. Nor do
        the processes that a worker forks before it enters the sandbox: they run no version.
        """
        self.lab.engine_state()  # reads the supervisor's messages
        waiting = {w.pid for shelf in self.pool._standby.values() for w in shelf if w.pid}
        supervisor = self.pool._supervisor
        workers = supervisor.workers.values() if supervisor else ()
        helpers = {pid for worker in workers for pid in worker.helper_pids}
        processes = set(tagged_processes(self.process_tag))
        return processes - {os.getpid(), *self.pool.pids, *helpers} - tree(waiting)

    def open_descriptors(self) -> int:
        """Return the number of open descriptors, without two of each worker.

        SQLite's are not counted, ours and IPython's: it keeps those of a closed connection for the
        next one. Nor are ZeroMQ's in a kernel: one for each thread that prints.
        """
        wait_until(self.ready_or_cold, within_s=60)
        targets = map(_target, os.listdir("/proc/self/fd"))
        count = sum(not any(other in t for other in NOT_OURS) for t in targets)
        return count - 2 * len(self.pool._supervisor.workers)

    def locks_are_free(self, folder: Path) -> bool:
        """Return True if nobody holds a lock in the folder."""
        return all(map(_free, folder.glob("*.*")))

    def store_is_intact(self, n_events: int) -> bool:
        """Return True if SQLite finds no damage and every event is there."""
        with sqlite3.connect(self.folder / ".triton_magics" / "lab.db") as store:
            (verdict,) = store.execute("PRAGMA integrity_check").fetchone()
        return verdict == "ok" and self.n_events() >= n_events

    def n_events(self) -> int:
        return self.lab.status("relu").n_events

    def files(self) -> set[str]:
        """Return the names of the files in the workspace."""
        return {p.name for p in self.folder.iterdir()}


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:  # the listing's own
        return "lab.db"


def _free(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def shown(value: Value) -> str:
    """Return the whole text that a user reads of a value."""
    return to_text(view(value), width=10_000)


def verdict(value: Value) -> str:
    """Return its status, or that of its compilation."""
    compilation = getattr(value, "compilation", None)
    return str(getattr(value, "status", None) or (compilation and compilation.status))
