"""Compose two faults at a time, in a seeded order, and check the notebook after each pair.

    make fault-pairs                                 (MINUTES=100)
    python tests/faults/pairs.py --minutes 30 --seed 2026 --into docs/measured/fault_pairs.json
    python tests/faults/pairs.py --only 'floods | at exit | never_ends | run'

A pair is two cells of `tests/faults/cells` and a form (see FORMS): both in one version, or one job
right after the other. The verdict of most pairs is open; that there is one is not. After each pair
the five checks of `check` hold. A pair that fails is repeated; it counts as a finding if it fails
again, and is listed as `unsteady` otherwise. Ends with 1 after a finding.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, wait_until
from tests.faults.engine.fault_lab import FILES, GRACE_S, RIGHT, FaultLab, shown, verdict
from tests.faults.next_job import all_ready
from triton_magics.config import LOCKS
from triton_magics.model import Value

TIMEOUT_S = 3.0
SOON_S = 0.5
SETTLES_S = 5.0
LONGEST_S = 30.0  # to import torch again, after a fault that ends the supervisor as well
# They take minutes, or much of a machine's memory.
SLOW = ("eats_memory", "has_its_child_eat_memory", "starts_too_many_processes", "multiplies")
# From an orphan, they would kill the parent of the notebook.
KILLERS = ("kills_the_nanny", "kills_its_parent")
VERBS = ("run", "validate")
VERDICTS = frozenset(
    {"passed", "failed", "rejected", "runtime_error", "compile_error", "out_of_memory", "timeout",
     "crashed", "skipped", "not_run"}
)  # fmt: skip

# Where a version commits the first fault (`a`) beside the second (`b`).
FORMS = {
    "before": """
def triton_relu(x):
    try:
        a(x)
    except BaseException:
        pass
    return b(x)
""",
    "while it raises": """
def triton_relu(x):
    try:
        return a(x)
    finally:
        b(x)
""",
    "in a thread": """
import threading


def triton_relu(x):
    threading.Thread(target=a, args=(x,), daemon=True).start()
    return b(x)
""",
    "in a child": """
import os


def triton_relu(x):
    if os.fork() == 0:
        try:
            a(x)
        finally:
            os._exit(7)
    return b(x)
""",
    "at import": """
import torch

try:
    a(torch.ones(4, 4))
except BaseException:
    pass


def triton_relu(x):
    return b(x)
""",
    "in a destructor": """
class Late:
    def __init__(self, x):
        self.x = x

    def __del__(self):
        a(self.x)


def triton_relu(x):
    late = Late(x)
    return b(x)
""",
    "at exit": """
import atexit


def triton_relu(x):
    atexit.register(a, x)
    return b(x)
""",
    "on an alarm": """
import signal


def triton_relu(x):
    signal.signal(signal.SIGALRM, lambda *_: a(x))
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    return b(x)
""",
    "in the result": """
import torch


class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        a(torch.ones(4, 4))
        return super().__torch_function__(func, types, args, kwargs or {})


def triton_relu(x):
    out = b(x)
    return out.as_subclass(Odd) if isinstance(out, torch.Tensor) else out
""",
}
JOBS = "job after job"


@dataclass(frozen=True)
class Pair:
    """Two faults, the form in which they meet, and the verb that runs them."""

    first: str
    form: str
    second: str
    verb: str

    def __str__(self) -> str:
        return f"{self.first} | {self.form} | {self.second} | {self.verb}"

    @property
    def source(self) -> str:
        """The version that has both."""
        a, b = (
            _as_function(name, source_of(cell))
            for name, cell in (("a", self.first), ("b", self.second))
        )
        return f"{a}\n\n{b}\n{FORMS[self.form]}"


def source_of(cell: str) -> str:
    return next(path for path in FILES if path.stem == cell).read_text()


def _as_function(name: str, source: str) -> str:
    """Return code that names the entry of a cell; the rest of the cell is local to it."""
    body = textwrap.indent(f"{source}\nreturn triton_relu", "    ")
    return f"def _{name}():\n{body}\n\n\ndef {name}(x):\n    return _{name}()(x)\n"


def draw(dice: random.Random) -> Iterator[Pair]:
    """Yield pairs without end."""
    cells = [path.stem for path in FILES if path.stem not in SLOW]
    while True:
        first, second = dice.choice(cells), dice.choice(cells)
        form = dice.choice([*FORMS, JOBS])
        if first not in KILLERS or form != "in a child":
            yield Pair(first, form, second, dice.choice(VERBS))


# ------------------------------------------------------------------------------------ checks


@dataclass(frozen=True)
class Parent:
    """State of the notebook's process that a fault in a worker must not change."""

    cwd: str
    environ: dict[str, str]
    handlers: tuple[Any, ...]
    threads: int
    descriptors: int
    files: frozenset[str]

    def settle(self, faults: FaultLab) -> list[str]:
        """Return what is not as it was, once no worker is starting or ending any more."""
        deadline_s = time.monotonic() + SETTLES_S
        while (changed := self._list_changes(Parent.now(faults))) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        return changed

    def _list_changes(self, now: Parent) -> list[str]:
        """Return the changes; the connection of a worker that just ends is none."""
        before, after = vars(self), vars(now)
        names = [n for n in before if n != "descriptors" and before[n] != after[n]]
        names += ["descriptors"] if now.descriptors > self.descriptors + 1 else []
        return [f"parent: {n}: {before[n]} is {after[n]}" for n in names]

    @classmethod
    def now(cls, faults: FaultLab) -> Parent:
        wait_until(lambda: all_ready(faults), within_s=60)
        return cls(
            os.getcwd(), dict(os.environ), tuple(map(signal.getsignal, range(1, 32))),
            threading.active_count(), faults.open_descriptors(), frozenset(faults.files()),
        )  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """The result of one pair.

    Attributes:
        verdicts: one for each job.
        wrong: the checks that failed.
        next_s: until the next job's answer; seconds.
    """

    verdicts: tuple[str, ...]
    wrong: tuple[str, ...]
    next_s: float


def check(faults: FaultLab, pair: Pair) -> Checked:
    """Do a pair and make the five checks: verdict, deadline, next job, nothing left, parent."""
    parent, n_events, wrong = Parent.now(faults), faults.n_events(), []
    verdicts, seconds = [], 0.0
    for source in (
        [pair.source] if pair.form != JOBS else [source_of(pair.first), source_of(pair.second)]
    ):
        faults.lab.write("relu", "v2", source, compile=False)
        started = time.monotonic()
        try:
            value = ask(faults, pair.verb)
        except BaseException:  # noqa: BLE001 (it is what is looked for)
            wrong.append(f"verdict: {traceback.format_exc(limit=-3)[-1500:]}")
        else:
            verdicts.append(verdict(value))
            if verdicts[-1] not in VERDICTS or "\x1b" in shown(value):
                wrong.append(f"verdict: {verdicts[-1]}: {shown(value)[-1500:]}")
        seconds = max(seconds, time.monotonic() - started)
    starts_s = LONGEST_S if {pair.first, pair.second} & {*KILLERS} else 0.0
    if seconds > TIMEOUT_S + GRACE_S + starts_s:
        wrong.append(f"deadline: {seconds:.1f} s, {verdicts}")
    started = time.monotonic()
    next_job = faults.lab.run("relu", "v1", shape=(4, 4))
    next_s = time.monotonic() - started
    if next_job.status != "passed" or next_s > LONGEST_S:
        wrong.append(f"next job: {next_s:.1f} s, {shown(next_job)[-1500:]}")
    wrong += left(faults, n_events)
    wrong += parent.settle(faults)
    return Checked(tuple(verdicts), tuple(wrong), round(next_s, 3))


def ask(faults: FaultLab, verb: str) -> Value:
    if verb == "run":
        return faults.lab.run("relu", "v2", shape=(4, 4), timeout=TIMEOUT_S)
    return faults.lab.validate("relu", "v2", shapes=[(4, 4)], dtypes=["float32"], timeout=TIMEOUT_S)


def left(faults: FaultLab, n_events: int) -> Iterator[str]:
    """Yield what a pair has left: processes, locks, a damaged store, folders."""
    try:
        wait_until(lambda: not faults.strangers(), within_s=10)
    except AssertionError:
        yield f"left: processes {describe(faults.strangers())}"
    if not faults.locks_are_free(LOCKS):
        yield "left: a lock"
    if not faults.store_is_intact(n_events + 1):
        yield "left: a damaged store"


def describe(pids: set[int]) -> list[str]:
    lines = []
    for pid in sorted(pids):
        try:
            command = (
                Path(f"/proc/{pid}/cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
            lines.append(f"{pid} {Path(f'/proc/{pid}/stat').read_text()[:60]} {command}")
        except OSError:
            continue
    return lines


# --------------------------------------------------------------------------------------- run


def search(seed: int, minutes: float, lab: FaultLab) -> dict[str, Any]:
    """Check pairs for that many minutes; return the figures."""
    started, forms, verdicts = time.monotonic(), Counter[str](), Counter[str]()
    findings: list[dict[str, Any]] = []
    unsteady: list[dict[str, Any]] = []
    next_s: list[float] = []
    slow: dict[str, float] = {}
    for pair in draw(random.Random(seed)):
        if time.monotonic() - started > minutes * 60:
            break
        print(f"{time.monotonic() - started:.0f} s: {pair}", file=sys.stderr, flush=True)
        result = check(lab, pair)
        forms[pair.form] += 1
        verdicts.update(result.verdicts)
        next_s.append(result.next_s)
        if result.next_s > SOON_S:
            slow[str(pair)] = result.next_s
        if result.wrong:
            again = check(lab, pair)
            entry = {"pair": str(pair), "wrong": result.wrong, "again": again.wrong}
            (findings if again.wrong else unsteady).append(entry)
            print(json.dumps(entry, indent=1), flush=True)
    return {
        "seed": seed, "minutes": round((time.monotonic() - started) / 60, 1),
        "pairs": forms.total(), "forms": forms, "verdicts": verdicts, "found": findings,
        "unsteady": unsteady, "next_job_over_half_a_second": slow,
        "next_job_s": {
            "median": round(statistics.median(next_s), 3), "longest": max(next_s)
        } if next_s else {},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one pair, as it is printed", type=_pair)
    parser.add_argument("--into", type=Path, help="a JSON file of the figures")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        os.chdir(workspace)
        lab = FaultLab(workspace, process_tag)
        lab.lab.write("relu", "v1", RIGHT)  # starts the processes that compile
        try:
            if options.only:
                result = check(lab, options.only)
                print(result)
                return int(bool(result.wrong))
            figures = search(options.seed, options.minutes, lab)
        finally:
            lab.lab.close()
            os.chdir("/")
    print(json.dumps(figures, indent=1))
    if into:
        into.write_text(json.dumps(figures, indent=1) + "\n")
    return int(bool(figures["found"]))


def _pair(text: str) -> Pair:
    return Pair(*(part.strip() for part in text.split("|")))


if __name__ == "__main__":
    sys.exit(main())
