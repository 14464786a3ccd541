"""What the engine's tests share: scripted workers, waiting, and a look at what is left behind."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from triton_magics.config import Settings
from triton_magics.engine import Engine, Outcome
from triton_magics.engine.protocol import BenchJob, DescribeJob, OpDescription, OpRef, VersionRef

WORKERS = Path(__file__).with_name("engine_workers")
MARK = "TRITON_TEST_MARK"  # of those that a worker gets to see, and no setting
VERSION = VersionRef(
    version="v1_baseline",
    attempt=1,
    path="/v1.py",
    sha256="0" * 64,
    entry="solve",
    header_lines=0,
    cell_offset=1,
    shown_path="v1.py",
)


@pytest.fixture(autouse=True)
def mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Every process that a test starts carries this; none may outlive the test."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("TRITON_MAGICS_CACHE", str(tmp_path))
    yield mark
    wait_until(lambda: not marked(mark))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = scripted()
    yield engine
    engine.close()


def scripted(script: str = "obeys.py", **settings: object) -> Engine:
    """An engine whose workers run a script of `engine_workers/`."""
    defaults = {"device": "interpreter", "silence_s": 5.0, "job_s": 30.0, "standbys": 1}
    return Engine(Settings(**(defaults | settings)), command=lambda mode: command(script, mode))


def forked(**settings: object) -> Engine:
    """An engine whose workers do the same, and are forked by a zygote."""
    defaults = {"device": "interpreter", "silence_s": 5.0, "job_s": 30.0, "standbys": 2}
    return Engine(
        Settings(**(defaults | settings)),
        command=lambda mode: command("obeys.py", mode),
        zygote=[sys.executable, str(WORKERS / "forks.py")],
    )


def command(script: str, mode: str) -> list[str]:
    # Without the site packages a script starts in milliseconds; the real loop needs them.
    quick = [] if script == "real_loop.py" else ["-S"]
    return [sys.executable, *quick, str(WORKERS / script), "--mode", mode]


def order(deed: str) -> DescribeJob:
    """A job that makes `obeys.py` do one of its deeds."""
    return DescribeJob(op=OpRef(name=deed))


def timing(deed: str) -> BenchJob:
    """A timing in which `obeys.py` does one of its deeds."""
    return BenchJob(
        op=OpRef(name=deed),
        versions=(VERSION,),
        sizes=("small",),
        runs=1,
        dtype="float32",
        seed=1,
        budget_s=1.0,
    )


def told(outcome: Outcome) -> dict:
    """The facts that `obeys.py` answered."""
    assert outcome.status == "finished", outcome
    assert isinstance(outcome.answer, OpDescription)
    return json.loads(outcome.answer.doc)


def pid(outcome: Outcome) -> int:
    """The process that answered."""
    return told(outcome)["pid"]


def wait_until(condition: Callable[[], object], within_s: float = 5.0) -> None:
    """Looks again and again until it holds; fails after `within_s`."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(0.002)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return process_state(pid) not in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def process_state(pid: int) -> bytes:
    """`R` running, `S` sleeping, `T` stopped, ..."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]


def children(parent: int) -> set[int]:
    """The processes that a process has started and that are there."""
    listing = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return {int(child) for child in listing.split()}


def marked(mark: str) -> list[int]:
    """The processes that were started with this mark in their environment."""
    needle = f"{MARK}={mark}".encode()
    return [pid for pid in _pids() if needle in _environ(pid) and alive(pid)]


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
