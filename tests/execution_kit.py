"""Scripted workers, waiting, and the processes of a test, for the tests of execution."""

from __future__ import annotations

import hashlib
import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from triton_magics.config import Settings
from triton_magics.execution import JobEvent, Limits, LocalExecutor, Outcome, wait_for
from triton_magics.execution.job_answers import OpDescription
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import BenchJob, DescribeJob, JobRequest
from triton_magics.execution.protocol import Progress

SILENCE_S, JOB_S = 60.0, 6000.0  # no job of a test is this slow
PAST_SILENCE_S, PAST_JOB_S = 20 * SILENCE_S, 20 * JOB_S  # a busy machine stretches a limit tenfold
WORKERS = Path(__file__).with_name("engine_workers")
LIMITS = {"silence_s": SILENCE_S, "job_s": JOB_S}
PROCESS_TAG = "TRITON_TEST_TAG"  # no setting; workers inherit it
VERSION = VersionRef(
    version="v1_baseline",
    attempt=1,
    source="",
    sha256=hashlib.sha256(b"").hexdigest(),
    entry="solve",
    header_lines=0,
    cell_offset=1,
    shown_path="v1.py",
)


@pytest.fixture(autouse=True)
def process_tag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Tag every process that a test starts; fail if one outlives the test."""
    process_tag = uuid.uuid4().hex
    monkeypatch.setenv(PROCESS_TAG, process_tag)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    yield process_tag
    wait_until(lambda: not tagged_processes(process_tag))


class LimitsClock:
    """The clock of jobs' limits: time passes, and more of it where a test says so.

    The limits of `scripted_executor` are longer than any delay of a busy machine.
    """

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def skip(self, seconds: float) -> None:
        """Let that much time pass at once."""
        self._ahead_s += seconds

    def after(self, stage: str, seconds: float) -> Callable[[Progress], None]:
        """Return a listener that lets time pass once a job reports a stage."""
        return lambda progress: self.skip(seconds) if progress.stage == stage else None


@pytest.fixture
def limits_clock(monkeypatch: pytest.MonkeyPatch) -> LimitsClock:
    """Return the clock of all jobs of this test."""
    limits_clock = LimitsClock()
    monkeypatch.setattr("triton_magics.execution.local.job_run.time", limits_clock)
    return limits_clock


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the file whose creation lets a job go on; the job removes it."""
    file = tmp_path / "release"
    monkeypatch.setenv("TRITON_TEST_RELEASE", str(file))
    return file


@pytest.fixture
def engine() -> Iterator[LocalExecutor]:
    engine = scripted_executor()
    yield engine
    engine.close()


def run(
    engine: LocalExecutor,
    job: JobRequest,
    *,
    key: str = "",
    device: str | None = None,
    timeout_s: float | None = None,
    **listeners: Any,
) -> Outcome:
    """Run a job and wait for it."""
    limits = None if timeout_s is None else Limits(timeout_s, timeout_s)
    events: SimpleQueue[JobEvent] = SimpleQueue()
    handle = engine.submit(job, device=device, key=key, limits=limits, on_event=events.put)
    return wait_for(handle, events, **listeners)


def next_job_finishes(engine: LocalExecutor) -> bool:
    """Return True if the next job, of other code, finishes."""
    return run(engine, scripted_job("answers"), key="next").status == "finished"


def cancel_running(engine: LocalExecutor) -> str | None:
    """Cancel the first job under way, and return its label."""
    for job in engine.queue().jobs:
        if engine.cancel(job.id):
            return job.job.label
    return None


def scripted_executor(script: str = "obeys.py", **settings: object) -> LocalExecutor:
    """Return an executor whose workers run a script of `engine_workers/`."""
    defaults = {**LIMITS, "device": "interpreter", "standbys": 1}
    return LocalExecutor(
        Settings(**(defaults | settings)), command=lambda mode: command(script, mode)
    )


def forking_executor(**settings: object) -> LocalExecutor:
    """Return an executor whose workers run `obeys.py` and come from a fork server."""
    defaults = {**LIMITS, "device": "interpreter", "standbys": 2}
    return LocalExecutor(
        Settings(**(defaults | settings)),
        command=lambda mode: command("obeys.py", mode),
        fork_server=[sys.executable, str(WORKERS / "forks.py")],
    )


def command(script: str, mode: str) -> list[str]:
    # Without the site packages a script starts in milliseconds; the real loop needs them.
    quick = [] if script == "real_loop.py" else ["-S"]
    return [sys.executable, *quick, str(WORKERS / script), "--mode", mode]


def scripted_job(action: str) -> DescribeJob:
    """Return a job in which `obeys.py` runs its function of that name."""
    return DescribeJob(op=OpRef(name=action))


def timing_job(action: str) -> BenchJob:
    """Return a timing in which `obeys.py` runs its function of that name."""
    return BenchJob(
        op=OpRef(name=action),
        versions=(VERSION,),
        sizes=("small",),
        runs=1,
        dtype="float32",
        seed=1,
        budget_s=1.0,
    )


def read_facts(outcome: Outcome) -> dict:
    """Return the facts that `obeys.py` replied with."""
    assert outcome.status == "finished", outcome
    assert isinstance(outcome.answer, OpDescription)
    return json.loads(outcome.answer.doc)


def read_pid(outcome: Outcome) -> int:
    """Return the id of the process that replied."""
    return read_facts(outcome)["pid"]


def wait_until(condition: Callable[[], object], within_s: float = 30.0) -> None:
    """Poll until the condition holds; fail after `within_s`."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.002)


def is_running(pid: int) -> bool:
    """Return True if the process runs; a zombie does not."""
    try:
        return process_state(pid) not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def process_state(pid: int) -> bytes:
    """Return the state: `R` running, `S` sleeping, `T` stopped, ..."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]


def children(parent: int) -> set[int]:
    """Return the living child processes."""
    listing = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return {int(child) for child in listing.split()}


def tagged_processes(process_tag: str) -> list[int]:
    """Return the processes that have this tag in their environment."""
    needle = f"{PROCESS_TAG}={process_tag}".encode()
    return [pid for pid in _pids() if needle in _environ(pid) and is_running(pid)]


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
