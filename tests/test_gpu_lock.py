"""The GPU lock: exclusive for timings, FIFO, and waiting processes learn the holders."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.execution_kit import wait_until
from triton_magics.harness.process.gpu_lock import (
    TIMED_LATELY_S,
    gpu_lock,
    is_for_validations,
    is_held,
    is_reserved,
    list_tickets,
    lock_path,
)

# Takes the lock repeatedly, reports its waits, and prints when it held the lock.
NOTEBOOK = """
import json, sys, time
from triton_magics.harness.process.gpu_lock import gpu_lock
name, gpu, times, alone = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "alone"
report = lambda text: print(json.dumps({"waits": text}), flush=True)
for i in range(times):
    print(json.dumps({"asks": time.monotonic()}), flush=True)
    with gpu_lock(gpu, exclusive=alone, purpose=f"timing {name}", on_wait=report):
        start_s = time.monotonic()
        print(json.dumps({"has": start_s}), flush=True)
        if sys.argv[5] == "waits":
            sys.stdin.read(1)
        else:
            while time.monotonic() < start_s + 0.01:
                pass
        ended = time.monotonic()
    print(json.dumps({"name": name, "from": start_s, "to": ended, "alone": alone}), flush=True)
"""


@pytest.fixture
def gpu() -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    yield name
    lock = lock_path(name)
    left = [p for state in ("new", "waits", "holds", "shares") for p in list_tickets(lock, state)]
    lock.unlink(missing_ok=True)
    assert left == []


class Notebook:
    """A process that takes the lock."""

    def __init__(
        self, name: str, gpu: str, times: int = 1, kind: str = "alone", pace: str = "waits"
    ) -> None:
        argv = [sys.executable, "-c", NOTEBOOK, name, gpu, str(times), kind, pace]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def next(self, word: str) -> object:
        """Return the next value that the process prints under a key."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if word in (message := json.loads(line)):
                return message[word]
        raise AssertionError(f"the process ended without {word!r}")

    def release(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def rest(self) -> list[dict]:
        """Wait for the end; return all remaining messages."""
        output, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return [json.loads(line) for line in output.splitlines()]


def test_waiting_process_learns_holder_and_queue_length(gpu: str) -> None:
    first = Notebook("softmax v1", gpu)
    first.next("has")
    second = Notebook("gelu v2", gpu)
    assert f"process {first.process.pid}, timing softmax v1, for " in str(second.next("waits"))
    third = Notebook("relu v3", gpu)
    message = str(third.next("waits"))
    assert "held by process" in message
    assert message.endswith("1 before you")
    for notebook in (first, second, third):
        notebook.release()
        notebook.rest()


def test_gpu_lock_is_fifo(gpu: str) -> None:
    holder = Notebook("holder", gpu)
    holder.next("has")
    queue = []
    for i in range(4):
        queue.append(Notebook(f"n{i}", gpu, kind="shared" if i % 2 else "alone"))
        wait_until(lambda i=i: len(list_tickets(lock_path(gpu), "waits")) == i + 1, within_s=20)
    holder.release()
    holder.rest()
    start_times = []
    for notebook in queue:
        start_times.append(notebook.next("has"))
        notebook.release()
        notebook.rest()
    assert start_times == sorted(start_times)


def test_dead_process_leaves_the_queue(gpu: str) -> None:
    holder = Notebook("holder", gpu)
    holder.next("has")
    waiting = Notebook("waiting", gpu)
    waiting.next("waits")
    last = Notebook("last", gpu)
    last.next("waits")
    for notebook in (waiting, holder):
        notebook.process.kill()
        notebook.process.communicate()
    assert last.next("has")
    last.release()
    last.rest()


def test_shared_holders_block_a_timing(gpu: str) -> None:
    with (
        gpu_lock(gpu, exclusive=False, purpose="validating", on_wait=print),
        gpu_lock(gpu, exclusive=False, purpose="validating too", on_wait=print),
    ):
        timing = Notebook("softmax", gpu)
        message = str(timing.next("waits"))
        assert "validating" in message
        assert "validating too" in message
    assert timing.next("has")
    timing.release()
    timing.rest()


def test_timings_of_three_processes_never_overlap(gpu: str) -> None:
    notebooks = [Notebook(f"n{i}", gpu, times=15, pace="runs") for i in range(3)]
    spans = [s for n in notebooks for s in n.rest() if "from" in s]
    assert len(spans) == 45
    spans.sort(key=lambda span: span["from"])
    for before, after in itertools.pairwise(spans):
        assert before["to"] <= after["from"]


def test_ticket_of_a_dead_process_is_removed(gpu: str) -> None:
    left = lock_path(gpu).with_suffix(f".waits.{0:020d}-1")
    left.write_text("process 1, timing softmax")
    with gpu_lock(gpu, exclusive=True, purpose="timing", on_wait=print):
        assert not left.exists()
        (ticket,) = list_tickets(lock_path(gpu), "holds")
        assert is_held(ticket)
        assert Path(ticket).read_text() == f"process {os.getpid()}, timing"


def test_gpu_is_reserved_while_a_process_holds_it_or_waits(gpu: str) -> None:
    assert not is_reserved(None)
    assert not is_reserved(gpu)
    with gpu_lock(gpu, exclusive=True, purpose="timing", on_wait=print):
        assert is_reserved(gpu)
    with gpu_lock(gpu, exclusive=False, purpose="validating", on_wait=print):
        assert not is_reserved(gpu)
        timing = Notebook("softmax", gpu)
        timing.next("waits")
        assert is_reserved(gpu)
    timing.next("has")
    timing.process.kill()
    timing.process.communicate()
    assert not is_reserved(gpu)


def test_concurrent_check_does_not_lock_a_dead_ticket(gpu: str) -> None:
    left = lock_path(gpu).with_suffix(f".waits.{0:020d}-1")
    left.write_text("process 1, timing softmax")
    with left.open() as looking:  # a concurrent check
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not is_held(left)


def test_lock_is_released_despite_a_forked_child(gpu: str) -> None:
    with gpu_lock(gpu, exclusive=False, purpose="sweeping", on_wait=print):
        if not (child := os.fork()):
            signal.pause()
    try:
        with gpu_lock(gpu, exclusive=True, purpose="sweeping", on_wait=pytest.fail):
            assert is_reserved(gpu)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_gpu_is_for_validations_until_a_process_times_on_it(gpu: str) -> None:
    def hold(*, exclusive: bool) -> AbstractContextManager[None]:
        return gpu_lock(gpu, exclusive=exclusive, purpose="testing", on_wait=print)

    assert not is_for_validations(None)
    assert not is_for_validations(gpu)
    with hold(exclusive=False):
        assert is_for_validations(gpu)
    assert not is_for_validations(gpu)  # nobody uses it
    with hold(exclusive=True):
        assert not is_for_validations(gpu)
    with hold(exclusive=False):
        assert not is_for_validations(gpu)
        lately_s = time.time() - TIMED_LATELY_S - 1
        os.utime(lock_path(gpu), (lately_s, lately_s))
        assert is_for_validations(gpu)
