"""Compose two faults at a time, in a seeded order, and check the notebook after each pair.

    make fault-pairs                                 (MINUTES=100)
    python tests/faults/pairs.py --minutes 30 --seed 2026 --into docs/measured/fault_pairs.json
    python tests/faults/pairs.py --minutes 8 --processes 12 --seed 3000 --into pairs.json
    python tests/faults/pairs.py --only 'floods | at exit | never_ends | run'

A pair is two cells of `tests/faults/cells` and a form (see pair_forms): both in one version, or one
job right after the other. The verdict of most pairs is open; that there is one is not. After each
pair the five checks of `check` hold. A pair that fails is repeated; it counts as a finding if it
fails again, and is listed as `unsteady` otherwise. Ends with 1 after a finding. Several processes
each search with a seed of their own, the first one's being `--seed`. The file of `--into` is
written after each pair, so a search that is stopped leaves what it has seen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, wait_until
from tests.faults.engine.fault_lab import GRACE_S, RIGHT, VERDICTS, FaultLab, shown, verdict
from tests.faults.next_job import all_ready
from tests.faults.pair_forms import JOBS, KILLERS, Pair, draw, source_of
from tests.faults.soak import own_tickets
from triton_magics.model import Value

TIMEOUT_S = 3.0
SOON_S = 0.5
SETTLES_S = 5.0
LONGEST_S = 30.0  # to import torch again, after a fault that ends the supervisor as well


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
    if own_tickets(faults.process_tag):
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


@dataclass
class Figures:
    """The figures of a search so far; those of several can be added."""

    seeds: list[int]
    minutes: float = 0.0
    forms: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)
    unsteady: list[dict[str, Any]] = field(default_factory=list)
    next_s: dict[str, float] = field(default_factory=dict)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the figures of another search, as `as_json` gives them."""
        self.seeds += other["seeds"]
        self.minutes = round(self.minutes + other["minutes"], 1)
        self.forms.update(other["forms"])
        self.verdicts.update(other["verdicts"])
        self.findings += other["findings"]
        self.unsteady += other["unsteady"]
        self.next_s |= other["next_s"]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "seeds": sorted(self.seeds)}

    def summary(self) -> dict[str, Any]:
        """Return what is recorded: of the next jobs only the slow ones by name."""
        figures = self.as_json()
        seconds = figures.pop("next_s").values()
        return figures | {
            "pairs": self.forms.total(),
            "next_job_over_half_a_second": {n: s for n, s in self.next_s.items() if s > SOON_S},
            "next_job_s": {
                "median": round(statistics.median(seconds), 3),
                "longest": max(seconds),
            } if seconds else {},
        }  # fmt: skip


def search(seed: int, minutes: float, lab: FaultLab, into: Path | None) -> Figures:
    """Check pairs for that many minutes; write the figures so far after each."""
    started, figures = time.monotonic(), Figures([seed])
    for pair in draw(random.Random(seed)):
        if time.monotonic() - started > minutes * 60:
            break
        print(f"{time.monotonic() - started:.0f} s: {pair}", file=sys.stderr, flush=True)
        result = check(lab, pair)
        figures.forms[pair.form] += 1
        figures.verdicts.update(result.verdicts)
        figures.next_s[str(pair)] = result.next_s
        if result.wrong:
            again = check(lab, pair)
            entry = {"pair": str(pair), "wrong": result.wrong, "again": again.wrong}
            (figures.findings if again.wrong else figures.unsteady).append(entry)
            print(json.dumps(entry, indent=1), flush=True)
        figures.minutes = round((time.monotonic() - started) / 60, 1)
        if into:
            write_json(into, figures.as_json())
    return figures


def search_in_processes(number: int, seed: int, minutes: float, into: Path | None) -> Figures:
    """Search with several seeds at once, each in a process; merge what they have written."""
    figures = Figures([])
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{i}.json" for i in range(number)]
        argv = [sys.executable, __file__, "--minutes", str(minutes), "--part"]
        searches = [
            subprocess.Popen([*argv, "--seed", str(seed + i), "--into", str(part)])
            for i, part in enumerate(parts)
        ]
        while True:
            is_done = all(process.poll() is not None for process in searches)
            figures = Figures([])
            for part in parts:
                if part.exists():
                    figures.add(json.loads(part.read_text()))
            if into:
                write_json(into, figures.summary())
            if is_done:
                return figures
            time.sleep(5)


def write_json(path: Path, value: object) -> None:
    half = path.with_suffix(".part")
    half.write_text(json.dumps(value, indent=1) + "\n")
    half.replace(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one pair, as it is printed", type=_pair)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--part", action="store_true", help="write all figures, to be merged")
    parser.add_argument("--into", type=Path, help="a JSON file of the figures")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    if options.processes > 1:
        figures = search_in_processes(options.processes, options.seed, options.minutes, into)
        print(json.dumps(figures.summary(), indent=1))
        return int(bool(figures.findings))
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
            figures = search(options.seed, options.minutes, lab, into)
        finally:
            lab.lab.close()
            os.chdir("/")
    if not options.part:
        print(json.dumps(figures.summary(), indent=1))
        if into:
            write_json(into, figures.summary())
    return int(bool(figures.findings))


def _pair(text: str) -> Pair:
    return Pair(*(part.strip() for part in text.split("|")))


if __name__ == "__main__":
    sys.exit(main())
