"""A standby worker does not warm up during a timing on its GPU, and still takes a job."""

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
from execution_kit import (  # noqa: F401 (process_tag: a fixture)
    WORKERS,
    process_tag,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution.protocol import FrameReader, Ready
from triton_magics.harness.process.gpu_lock import gpu_lock, lock_path


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    monkeypatch.setenv("TRITON_TEST_GPU", name)
    yield name
    lock_path(name).unlink(missing_ok=True)


def hold_timing_lock(gpu: str) -> AbstractContextManager[None]:
    """Return the lock that another notebook holds while it times."""
    return gpu_lock(gpu, exclusive=True, purpose="timing softmax", on_wait=print)


def frames(connection: socket.socket) -> Iterator[str]:
    """Yield the warm-up states that a worker sends."""
    reader = FrameReader()
    while data := connection.recv(2**16):
        for frame in reader.feed(data):
            assert isinstance(frame, Ready)
            yield frame.warm_up


def test_warm_up_waits_for_a_timing(gpu: str) -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(120)
    with hold_timing_lock(gpu):
        script = [sys.executable, str(WORKERS / "real_loop.py"), "--mode", "compiler"]
        worker = subprocess.Popen(
            [*script, "--fd", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(WORKERS.parents[1])},
        )
        theirs.close()
        messages = frames(ours)
        assert next(messages) == "due"
        assert next(messages) == "postponed"
        free_at = time.monotonic()
    assert next(messages) == "done"
    ours.close()
    printed, _ = worker.communicate(timeout=120)
    steps = [float(line) for line in printed.split()]
    assert len(steps) == 2
    assert min(steps) > free_at


def test_a_warm_up_for_timings_waits_while_others_validate(gpu: str) -> None:
    engine = scripted_executor("real_loop.py", standbys=1)
    pool = engine.queue().pool
    with gpu_lock(gpu, exclusive=False, purpose="validating softmax", on_wait=print):
        for _ in range(2):
            outcome = run(engine, scripted_job("fine"))  # a new worker for each: it has no key
            assert len(outcome.output.split()) == 2  # "on stdout"
            wait_until(lambda: engine.state() and pool.has_available(engine.device_kind))
            assert not engine.state().standby_ready
    wait_until(lambda: engine.state().standby_ready)
    engine.close()


def test_it_waits_for_no_validation_after_a_timing(gpu: str) -> None:
    engine = scripted_executor("real_loop.py", standbys=1)
    with hold_timing_lock(gpu):
        pass
    with gpu_lock(gpu, exclusive=False, purpose="validating softmax", on_wait=print):
        engine.warm()
        wait_until(lambda: engine.state().standby_ready)
    engine.close()


def test_worker_with_a_postponed_warm_up_takes_jobs(gpu: str) -> None:
    engine = scripted_executor("real_loop.py")
    with hold_timing_lock(gpu):
        for _ in range(2):  # also after a fault, and where none ever has
            assert run(engine, scripted_job("segfaults"), key="a").exit == "SIGSEGV"
            assert run(engine, scripted_job("fine"), key="b").status == "finished"
        assert not engine.state().standby_ready
    wait_until(lambda: engine.state().standby_ready)
    engine.close()
