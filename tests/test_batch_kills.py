"""A worker, the supervisor or the scheduler is killed in the middle of a batch.

No finished result is lost, and a further call runs what is left.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.execution_kit import wait_until
from tests.test_dask_lost_worker import TAG, list_tagged
from triton_magics.config import Settings
from triton_magics.errors import Unavailable
from triton_magics.lab import Lab
from triton_magics.model import Status

pytestmark = pytest.mark.slow  # processes that import torch
N = 5
RIGHT = "def triton_relu(x):\n    return x.relu()  # {}\n"
WAITS = """import os, time
def triton_relu(x):
    with open({path!r} + "+", "w") as file:
        file.write(str(os.getppid()))
    os.rename({path!r} + "+", {runs!r})
    while not os.path.exists({path!r}):
        time.sleep(0.02)
    return x.relu()
"""


@pytest.fixture(autouse=True)
def tag(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tag every process of a test; fail if one outlives it."""
    monkeypatch.setenv(TAG, str(os.getpid()))
    monkeypatch.setenv("TRITON_MAGICS_SANDBOX", "off")  # a version looks at a file of the test
    yield
    wait_until(lambda: not list_tagged(), 60)


def prepare(folder: Path) -> Path:
    """Write five versions, of which the third waits for a file; return the batch of their runs."""
    with Lab(folder, settings=Settings(device="interpreter", sandbox="off")) as lab:
        for n in range(1, N + 1):
            source = (
                WAITS.format(path=str(folder / "go"), runs=str(folder / "runs"))
                if n == 3
                else RIGHT.format(n)
            )
            lab.kernel("relu", f"v{n}", source, compile=False)
    steps = [
        {"verb": "run", "arguments": {"op": "relu", "version": f"v{n}", "shape": "4x4"}}
        for n in range(1, N + 1)
    ]
    file = folder / "steps.jsonl"
    file.write_text("".join(json.dumps(step) + "\n" for step in steps))
    return file


def results_of(file: Path) -> list[tuple[int, str | None]]:
    """Return line and status of each result in the file."""
    results = file.with_name("steps.results.jsonl")
    if not results.exists():
        return []
    lines = [line for line in results.read_text().splitlines(keepends=True) if line.endswith("\n")]
    entries = [json.loads(line)["entry"] for line in lines]
    return [(e["line"], e["status"]) for e in entries]


@contextmanager
def when_two_are_done(file: Path, act: Callable[[], object]) -> Iterator[None]:
    """Act once the first two lines have their results, and the third runs."""

    def wait_and_act() -> None:
        wait_until(lambda: len(results_of(file)) == 2 and (file.parent / "runs").exists(), 200)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()


def assert_the_rest_runs(lab: Lab, file: Path, folder: Path, *, resumed: int) -> None:
    (folder / "go").touch()
    again = lab.batch(str(file), at_once=1)
    assert (again.resumed, again.status) == (resumed, Status.PASSED)
    assert [e.line for e in again.entries] == list(range(1, N + 1))


def test_a_killed_worker_costs_its_own_line(tmp_path: Path) -> None:
    file = prepare(tmp_path)
    with Lab(tmp_path, settings=Settings(device="interpreter", sandbox="off")) as lab:

        def kill() -> None:
            os.kill(int((tmp_path / "runs").read_text()), signal.SIGKILL)

        with when_two_are_done(file, kill):
            batch = lab.batch(str(file), at_once=1)
    assert [e.ok for e in batch.entries] == [True, True, False, True, True]
    assert batch.entries[2].status is Status.CRASHED


def test_a_killed_supervisor_costs_no_finished_line(tmp_path: Path) -> None:
    file = prepare(tmp_path)
    with Lab(tmp_path, settings=Settings(device="interpreter", sandbox="off")) as lab:

        def kill() -> None:
            executor: Any = lab.jobs.executor
            os.kill(executor.queue().pool.pids[0], signal.SIGKILL)

        with when_two_are_done(file, kill):
            batch = lab.batch(str(file), at_once=1)
    assert [e.ok for e in batch.entries] == [True, True, False, True, True]
    assert batch.entries[2].status is Status.CRASHED
    assert len(results_of(file)) == N


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def dask_process(kind: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_killed_scheduler_costs_no_finished_line(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file, port = prepare(tmp_path), str(free_port())
    address = f"tcp://127.0.0.1:{port}"
    settings = Settings(engine="dask", scheduler=address, device="interpreter", sandbox="off")
    worker = (address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with Lab(tmp_path, settings=settings) as lab, ExitStack() as processes:
        start = processes.enter_context
        scheduler = start(dask_process("scheduler", "--port", port, "--no-dashboard"))
        start(dask_process("worker", *worker))
        wait_until(lambda: is_connected(lab), 200)
        with when_two_are_done(file, scheduler.kill):
            batch = lab.batch(str(file), at_once=1)
        assert [e.line for e in batch.entries if e.ok] == [1, 2]
        assert not any(e.has_run for e in batch.entries if not e.ok)
        assert batch.status is Status.UNAVAILABLE
        assert "connection to the Dask scheduler was lost" in batch.entries[2].error
        start(dask_process("scheduler", "--port", port, "--no-dashboard"))
        start(dask_process("worker", *worker))
        wait_until(lambda: is_connected(lab), 200)
        assert_the_rest_runs(lab, file, tmp_path, resumed=2)


def is_connected(lab: Lab) -> bool:
    try:
        return bool(lab.jobs.executor.devices())
    except Unavailable:
        return False
