"""Who stands by leaves a GPU alone on which somebody times, and takes a job all the same."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from engine_harness import (  # noqa: F401 (mark: a fixture)
    WORKERS,
    mark,
    order,
    scripted,
    wait_until,
)

from triton_magics.engine.protocol import FrameReader, Ready
from triton_magics.worker.lock import gpu_lock, lock_path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    monkeypatch.setenv("TRITON_TEST_GPU", name)
    yield name
    lock_path(name).unlink(missing_ok=True)


def timing(gpu: str) -> AbstractContextManager[None]:
    """What another notebook has while it times."""
    return gpu_lock(gpu, alone=True, what="timing softmax", waiting=print)


def frames(connection: socket.socket) -> Iterator[str]:
    """What a worker says of its rehearsal, frame by frame."""
    reader = FrameReader()
    while data := connection.recv(2**16):
        for frame in reader.feed(data):
            assert isinstance(frame, Ready)
            yield frame.rehearsal


def test_nothing_is_rehearsed_while_somebody_times(gpu: str) -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    with timing(gpu):
        script = [sys.executable, str(WORKERS / "real_loop.py"), "--mode", "compiler"]
        worker = subprocess.Popen(
            [*script, "--fd", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(WORKERS.parents[1])},
        )
        theirs.close()
        said = frames(ours)
        assert next(said) == "due"
        assert next(said) == "put off"
        free_at = time.monotonic()
    assert next(said) == "done"
    ours.close()
    printed, _ = worker.communicate(timeout=20)
    steps = [float(line) for line in printed.split()]
    assert len(steps) == 2
    assert min(steps) > free_at


def test_a_worker_that_may_not_rehearse_serves_all_the_same(
    gpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.engine.pool.WARM_S", 20.0)
    engine = scripted("real_loop.py")
    with timing(gpu):
        for _ in range(2):  # also after a fault, and where none ever has
            assert engine.run(order("segfaults"), key="a").exit == "SIGSEGV"
            assert engine.run(order("fine"), key="b").status == "finished"
        assert not engine.state().standby_ready
    wait_until(lambda: engine.state().standby_ready)
    engine.close()
