"""The lock of a GPU: one timing at a time, in the order of asking; who waits is told for whom."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine_harness import wait_until
from triton_magics.worker.lock import gpu_lock, is_held, lock_path, spoken_for, tickets

# Takes the lock NAME times times, says what it waited for, and notes when it had it.
NOTEBOOK = """
import json, sys, time
from triton_magics.worker.lock import gpu_lock
name, gpu, times, alone = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "alone"
said = lambda text: print(json.dumps({"said": text}), flush=True)
for i in range(times):
    print(json.dumps({"asks": time.monotonic()}), flush=True)
    with gpu_lock(gpu, alone=alone, what=f"timing {name}", waiting=said):
        begun = time.monotonic()
        print(json.dumps({"has": begun}), flush=True)
        if sys.argv[5] == "waits":
            sys.stdin.read(1)
        else:
            while time.monotonic() < begun + 0.01:
                pass
        ended = time.monotonic()
    print(json.dumps({"name": name, "from": begun, "to": ended, "alone": alone}), flush=True)
"""


@pytest.fixture
def gpu() -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex}"
    yield name
    lock = lock_path(name)
    left = [p for state in ("new", "waits", "holds", "shares") for p in tickets(lock, state)]
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
        """What it says under that word next."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if word in (said := json.loads(line)):
                return said[word]
        raise AssertionError(f"it ended before it said {word!r}")

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def rest(self) -> list[dict]:
        """All that it still says, once it has ended."""
        said, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return [json.loads(line) for line in said.splitlines()]


def test_who_waits_is_told_for_whom_and_how_many_are_before(gpu: str) -> None:
    first = Notebook("softmax v1", gpu)
    first.next("has")
    second = Notebook("gelu v2", gpu)
    assert f"process {first.process.pid}, timing softmax v1, for " in str(second.next("said"))
    third = Notebook("relu v3", gpu)
    told = str(third.next("said"))
    assert "held by process" in told
    assert told.endswith("1 before you")
    for notebook in (first, second, third):
        notebook.let_go()
        notebook.rest()


def test_nobody_is_overtaken(gpu: str) -> None:
    holder = Notebook("holder", gpu)
    holder.next("has")
    queue = []
    for i in range(4):
        queue.append(Notebook(f"n{i}", gpu, kind="shared" if i % 2 else "alone"))
        wait_until(lambda i=i: len(tickets(lock_path(gpu), "waits")) == i + 1, within_s=20)
    holder.let_go()
    holder.rest()
    begun = []
    for notebook in queue:
        begun.append(notebook.next("has"))
        notebook.let_go()
        notebook.rest()
    assert begun == sorted(begun)


def test_a_place_in_the_queue_goes_with_its_process(gpu: str) -> None:
    holder = Notebook("holder", gpu)
    holder.next("has")
    waiting = Notebook("waiting", gpu)
    waiting.next("said")
    last = Notebook("last", gpu)
    last.next("said")
    for notebook in (waiting, holder):
        notebook.process.kill()
        notebook.process.communicate()
    assert last.next("has")
    last.let_go()
    last.rest()


def test_shared_holders_hold_together_and_keep_a_timing_out(gpu: str) -> None:
    with (
        gpu_lock(gpu, alone=False, what="validating", waiting=print),
        gpu_lock(gpu, alone=False, what="validating too", waiting=print),
    ):
        timing = Notebook("softmax", gpu)
        told = str(timing.next("said"))
        assert "validating" in told
        assert "validating too" in told
    assert timing.next("has")
    timing.let_go()
    timing.rest()


def test_three_notebooks_never_time_at_once_and_each_gets_its_turn(gpu: str) -> None:
    notebooks = [Notebook(f"n{i}", gpu, times=15, pace="runs") for i in range(3)]
    spans = [s for n in notebooks for s in n.rest() if "from" in s]
    assert len(spans) == 45
    spans.sort(key=lambda span: span["from"])
    for before, after in itertools.pairwise(spans):
        assert before["to"] <= after["from"]


def test_a_ticket_that_nobody_holds_is_thrown_away(gpu: str) -> None:
    left = lock_path(gpu).with_suffix(f".waits.{0:020d}-1")
    left.write_text("process 1, timing softmax")
    with gpu_lock(gpu, alone=True, what="timing", waiting=print):
        assert not left.exists()
        (held,) = tickets(lock_path(gpu), "holds")
        assert is_held(held)
        assert Path(held).read_text() == f"process {os.getpid()}, timing"


def test_a_gpu_is_spoken_for_while_one_has_it_alone_or_waits(gpu: str) -> None:
    assert not spoken_for(None)
    assert not spoken_for(gpu)
    with gpu_lock(gpu, alone=True, what="timing", waiting=print):
        assert spoken_for(gpu)
    with gpu_lock(gpu, alone=False, what="validating", waiting=print):
        assert not spoken_for(gpu)
        timing = Notebook("softmax", gpu)
        timing.next("said")
        assert spoken_for(gpu)
    timing.next("has")
    timing.process.kill()
    timing.process.communicate()
    assert not spoken_for(gpu)


def test_who_looks_at_a_ticket_of_the_dead_is_not_taken_for_who_had_it(gpu: str) -> None:
    left = lock_path(gpu).with_suffix(f".waits.{0:020d}-1")
    left.write_text("process 1, timing softmax")
    with left.open() as looking:  # and is stopped in the midst of it
        fcntl.flock(looking, fcntl.LOCK_SH)
        assert not is_held(left)


def test_a_lock_is_given_back_whoever_was_forked_meanwhile(gpu: str) -> None:
    with gpu_lock(gpu, alone=False, what="sweeping", waiting=print):
        if not (child := os.fork()):
            signal.pause()
    try:
        with gpu_lock(gpu, alone=True, what="sweeping", waiting=pytest.fail):
            assert spoken_for(gpu)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
