"""Kill programs on one workspace at random; check that nothing is lost, doubled or left over.

    python tests/faults/kills.py --minutes 20 --seed 2028 --into docs/measured/kills.json

Four programs work in one folder: a notebook, a server, a client of its REST API, and a notebook
whose executor is that server. Each writes versions of one op, right and wrong ones, validates them,
and notes what was acknowledged to it. Meanwhile a signal (SIGKILL, SIGTERM, a stop of 2 s) hits one
of them, a supervisor, or a process below a supervisor. A program that has ended starts again.
The seed fixes the order of kills and pauses. Ends with 1 if something was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.execution_kit import PROCESS_TAG, tagged_processes
from tests.faults import kill_programs
from tests.faults.kill_programs import ACTORS, FINAL, OP, TOKEN, WRONG_LINE, source_of
from triton_magics.config import Settings
from triton_magics.execution.local.supervisor.process_table import children_of, tree
from triton_magics.lab import Lab
from triton_magics.serve.job_records import JobRecords

TARGETS = ("notebook", "remote", "client", "server", "supervisor", "below")
SIGNALS = ("kill", "kill", "kill", "terminate", "stop")
PAUSE_S = (1.0, 12.0)
STOPPED_S = 2.0
GONE_S = 30.0
# A killed worker gives `crashed`, a lost connection to the executor `interrupted`.
NO_VERDICT = ("crashed", "interrupted", "not_run")
VERDICTS = {True: ("passed", *NO_VERDICT), False: ("failed", *NO_VERDICT)}
AGED_S = 7200.0


@dataclass
class KillRun:
    """The result of a run.

    Attributes:
        kills: number by target and signal.
        starts: how often each program was started.
        acknowledged: number of attempts, verdicts and jobs that reached a program.
        refused: errors of the package that a program got, by class.
        jobs: final states of the jobs that the server accepted.
        after_s: seconds from the last kill until no process was left.
        wrong: the deviations, in words.
    """

    minutes: float
    seed: int
    kills: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)
    events: int = 0
    after_s: float = 0.0
    wrong: list[str] = field(default_factory=list)


# --------------------------------------------------------------------------------- the killing


class Programs:
    """The programs of a run: starts them, finds their processes, kills at random."""

    def __init__(self, base: Path, dice: random.Random) -> None:
        self.workspace, self.notes, self.base = base / "workspace", base / "notes", base
        self._dice = dice
        self._port = free_port()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.starts: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()
        (base / "token").write_text(f"ann {TOKEN}\n")
        (base / "token").chmod(0o600)
        self.workspace.mkdir()

    def start_missing(self) -> None:
        """Start each program that does not run."""
        for name in ("server", *ACTORS):
            process = self._running.get(name)
            if process is None or process.poll() is not None:
                self._running[name] = self._start(name)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        self.starts[name] += 1
        if name == "server":
            words = ["-m", "triton_magics", "serve", "--port", str(self._port), "--mode", "fastapi"]
            words += ["--workspace", str(self.workspace), "--token-file", str(self.base / "token")]
        else:
            first = self.starts[name] * 10_000
            words = [kill_programs.__file__, name, str(self.base), str(self._port), str(first)]
        with (self.base / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words], stdout=log, stderr=log, cwd=self.workspace,
            )  # fmt: skip

    def kill_one(self) -> None:
        """Send a signal to a process that the dice choose."""
        target, name = self._dice.choice(TARGETS), self._dice.choice(SIGNALS)
        pids = sorted(self._pids_of(target))
        if not pids:
            return
        pid = pids[self._dice.randrange(len(pids))]
        self.kills[f"{target}: {name}"] += 1
        number = {"kill": signal.SIGKILL, "terminate": signal.SIGTERM, "stop": signal.SIGSTOP}[name]
        try:
            os.kill(pid, number)
            if name == "stop":
                time.sleep(STOPPED_S)
                os.kill(pid, self._dice.choice((signal.SIGCONT, signal.SIGKILL)))
        except ProcessLookupError:  # it has ended by itself
            pass

    def _pids_of(self, target: str) -> set[int]:
        if target in self._running:
            return {self._running[target].pid}
        supervisors = {
            child
            for process in self._running.values()
            for child in children_of(process.pid)
            if b"supervisor" in command_of(child)
        }
        return supervisors if target == "supervisor" else tree(supervisors) - supervisors

    def kill_all(self) -> None:
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(minutes: float, seed: int, base: Path, process_tag: str) -> KillRun:
    """Let the programs work and die for so long; check what is left."""
    result = KillRun(minutes, seed)
    programs = Programs(base, random.Random(seed))
    before = set(Path("/dev/shm").iterdir())
    dice, until = random.Random(seed + 1), time.monotonic() + 60 * minutes
    while time.monotonic() < until:
        programs.start_missing()
        time.sleep(dice.uniform(*PAUSE_S))
        programs.kill_one()
    programs.kill_all()
    killed_s = time.monotonic()
    wait_for(lambda: set(tagged_processes(process_tag)) <= {os.getpid()}, GONE_S)
    result.after_s = round(time.monotonic() - killed_s, 2)
    for pid in set(tagged_processes(process_tag)) - {os.getpid()}:
        result.wrong.append(f"process left: {pid} {command_of(pid)!r}")
        os.kill(pid, signal.SIGKILL)
    result.kills, result.starts = dict(programs.kills), dict(programs.starts)
    judge(result, programs, read_notes(programs.notes))
    left = set(Path("/dev/shm").iterdir()) - before
    result.wrong += [f"left in shared memory: {path}" for path in left]
    return result


def wait_for(condition: Callable[[], bool], within_s: float) -> None:
    """Poll until the condition holds, or the time is over."""
    until = time.monotonic() + within_s
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


def read_notes(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


# --------------------------------------------------------------------------------- the checks


def judge(result: KillRun, programs: Programs, notes: list[dict[str, Any]]) -> None:
    """Compare what was acknowledged with the workspace, and look for what is left."""
    of_kind = {kind: [n for n in notes if n["kind"] == kind] for kind in
               ("written", "validated", "refused", "job")}  # fmt: skip
    result.acknowledged = {kind: len(of_kind[kind]) for kind in ("written", "validated", "job")}
    result.refused = dict(Counter(f"{n['name']}: {n['error']}" for n in of_kind["refused"]))
    age_drafts(programs.workspace)
    with Lab(programs.workspace, settings=Settings(device="interpreter")) as lab:
        if lab.run(OP, "v1", shape=(4, 4)).status not in ("passed", "failed"):
            result.wrong.append("the next job does not work")
        events = list(lab.session.workspace.events(OP))
        result.events = len(events)
        result.wrong += check_attempts(events, of_kind["written"])
        result.wrong += check_verdicts(events, of_kind["validated"])
        result.wrong += [
            f"doctor: {finding}"
            for finding in lab.session.workspace.check()
            if finding.state != "good"
        ]
        in_log = programs.workspace / "logs" / f"{OP}_log.jsonl"
        logged = [json.loads(line)["uuid"] for line in in_log.read_text().splitlines()]
        if Counter(logged) != Counter(event.uuid for event in lab.session.workspace.events(OP)):
            result.wrong.append("the log and the store do not have the same events")
    result.wrong += check_jobs(result, programs.workspace, of_kind["job"])
    result.wrong += check_files(programs)


def check_attempts(events: list[Any], acknowledged: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each acknowledged attempt that is lost or altered, and each that is there twice."""
    written = [event.source for event in events if event.source is not None]
    by_number = {(each.version.split("_")[0], each.attempt): each.source for each in written}
    if len(by_number) != len(written):
        yield f"{len(written)} attempts have {len(by_number)} numbers"
    for source, count in Counter(each.source for each in written).items():
        if count > 1:
            yield f"written {count} times: {source[-30:]!r}"
    for each in acknowledged:
        source, _ = source_of(each["name"], each["number"])
        if by_number.get((ACTORS[each["name"]], each["attempt"])) != source:
            yield f"lost or altered: {each}"


def check_verdicts(events: list[Any], acknowledged: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each verdict that is lost, there twice, or not that of its version."""
    seeds = Counter(e.result.request.seed for e in events if e.verb == "validated")
    for seed, count in seeds.items():
        if count > 1:
            yield f"{count} verdicts of seed {seed}"
    for each in acknowledged:
        if each["seed"] not in seeds:
            yield f"verdict lost: {each}"
        if each["status"] not in VERDICTS[each["right"]]:
            yield f"wrong verdict: {each}"
    sources = {(e.version, e.attempt): e.source.source for e in events if e.source is not None}
    for event in (e for e in events if e.verb == "validated"):
        is_right = WRONG_LINE not in sources[event.version, event.attempt]
        if event.result.status not in VERDICTS[is_right]:
            yield f"wrong verdict: {event.version} attempt {event.attempt}: {event.result.status}"


def check_jobs(result: KillRun, workspace: Path, accepted: list[dict[str, Any]]) -> Iterator[str]:
    """Yield each accepted job that has no record, or no end once a server has started again."""
    JobRecords(workspace / ".triton_magics").close()
    database = workspace / ".triton_magics" / "server.db"
    with sqlite3.connect(database) as conn:
        rows = [json.loads(row[0]) for row in conn.execute("SELECT json FROM jobs")]
    states = {row["id"]: row["state"] for row in rows}
    ids = {each["id"] for each in accepted}
    result.jobs = dict(Counter(states.get(each, "none") for each in ids))
    for each in ids - set(states):
        yield f"job lost: {each}"
    for each in (each for each in ids if states.get(each, FINAL[0]) not in FINAL):
        yield f"job without an end: {each}, {states[each]}"


def age_drafts(workspace: Path) -> None:
    """Make the drafts that a killed process left old enough to be removed at the next opening."""
    for draft in (workspace / ".triton_magics" / "tmp").glob("*"):
        os.utime(draft, (time.time() - AGED_S,) * 2)


def check_files(programs: Programs) -> Iterator[str]:
    """Yield each file that is left beside the workspace's own."""
    for draft in (programs.workspace / ".triton_magics" / "tmp").iterdir():
        yield f"draft left: {draft.name}"
    for damaged in (programs.workspace / ".triton_magics").glob("*corrupt*"):
        yield f"the store was moved aside: {damaged.name}"
    for path in (programs.base / "tmp").glob("triton_magics*"):
        yield f"left in the temporary folder: {path.name}"
    for name in ACTORS:
        text = (programs.base / f"{name}.log").read_text(errors="replace")
        if "Traceback" in text:
            yield f"traceback of {name}: {text[text.index('Traceback') :][:1500]}"


# ------------------------------------------------------------------------------------------ main


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, help="a JSON file of the result")
    options = parser.parse_args()
    into = options.into and options.into.absolute()
    os.environ[PROCESS_TAG] = process_tag = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["TRITON_MAGICS_CACHE"] = f"{folder}/cache"
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        os.environ["TMPDIR"] = f"{folder}/tmp"
        Path(folder, "tmp").mkdir()
        result = run(options.minutes, options.seed, Path(folder), process_tag)
    print(json.dumps(asdict(result), indent=1))
    if into:
        into.write_text(json.dumps(asdict(result), indent=1) + "\n")
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
