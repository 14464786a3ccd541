"""A session over ssh outlives its connection: each frame once, jobs go on, nothing is left."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.execution_kit import wait_until
from triton_magics.config import Settings
from triton_magics.errors import Interrupted, ServerLost, Unavailable
from triton_magics.execution.frame_stream import FrameStream
from triton_magics.execution.remote_channels import Link, ProcessChannel
from triton_magics.execution.remote_executor import RemoteExecutor
from triton_magics.execution.remote_frames import CancelJob
from triton_magics.execution.resumable import ResumableStream, SavedFrames
from triton_magics.lab import Lab

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


def test_every_frame_arrives_once_over_lost_connections() -> None:
    ends = [ResumableStream(lambda lost: None), ResumableStream(lambda lost: None)]
    sockets: list[socket.socket] = []
    numbers = random.Random(7)

    def connect() -> None:
        received = [end.detach() for end in ends]
        pair = socket.socketpair()
        sockets.extend(pair)
        for end, own, count in zip(ends, pair, reversed(received), strict=True):
            end.attach(FrameStream(own.fileno(), own.fileno()), count)

    connect()
    n_frames = 400
    for number in range(n_frames):
        for end in ends:
            end.send(CancelJob(id=str(number) + "x" * numbers.choice((0, 5000))))
        if number % 40 == 20:
            sockets[-1].shutdown(socket.SHUT_RDWR)
            connect()
    for end in ends:
        frames = [end.receive() for _ in range(n_frames)]
        assert [int(f.id.rstrip("x")) for f in frames] == list(range(n_frames))  # type: ignore[union-attr]
    for end in ends:
        end.close()
    for each in sockets:
        each.close()


def test_saved_frames_are_bounded_and_the_newest_stays() -> None:
    saved = SavedFrames()
    for _ in range(5):
        saved.add(b"x" * 2**24)
    saved.forget(1)
    assert [number for number, _ in saved.after(1)] == [2, 3, 4, 5]
    saved.forget(5)
    assert [number for number, _ in saved.after(3)] == [4, 5]
    with pytest.raises(LookupError):
        saved.after(2)
    saved.add(b"x" * 2**26)
    saved.forget(6)
    assert [number for number, _ in saved.after(5)] == [6]
    with pytest.raises(LookupError):
        saved.after(7)


SSH = """
import os, subprocess, sys, threading
host = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        start_new_session=True)
def copy(source, target):
    while data := os.read(source, 65536):
        os.write(target, data)
def answers():
    copy(host.stdout.fileno(), 1)
    os._exit(0)
threading.Thread(target=answers, daemon=True).start()
copy(0, host.stdin.fileno())
host.stdin.close()
host.wait()
"""
"""Stands for ssh and sshd: killed, it closes both pipes of the host's process."""

HOST = """
import os, sys
import triton_magics
from tests.fake_executor import FakeExecutor
from triton_magics.config import Settings
from triton_magics.execution.remote_stdio import run_stdio
triton_magics.__version__ = sys.argv[2] or triton_magics.__version__
engine = FakeExecutor()
engine.prints = f"{os.getpid()}\\n"
run = engine.run
def hold(job, **more):
    if job.kind == "validate":
        open(sys.argv[1]).read()
    return run(job, **more)
engine.run = hold
run_stdio(Settings(), lambda settings: engine)
"""
"""A host whose validations wait until the test opens its FIFO."""


class Box:
    """Another machine, to which a process stands for ssh."""

    def __init__(self, gate: Path, version: str = "") -> None:
        os.mkfifo(gate)
        self.gate = gate
        command = (sys.executable, "-c", HOST, str(gate), version)
        self.command = (sys.executable, "-S", "-c", SSH, *command)
        self.links: list[Link] = []
        self.way = threading.Event()  # there is a network
        self.way.set()

    def open_channel(self) -> ProcessChannel:
        return ProcessChannel(self.command, "box", self._start)

    def _start(self, command: Sequence[str]) -> Link:
        if not self.way.is_set():
            raise Unavailable("no route to host")
        self.links.append(Link(command))
        return self.links[-1]

    def cut(self) -> None:
        """End the connection as a lost network does."""
        self.links[-1].kill()

    def during_a_job(self, act: Callable[[], object] = str) -> None:
        """Act once a job waits there, and then let it go on."""

        def wait_and_act() -> None:
            with self.gate.open("w"):
                act()

        threading.Thread(target=wait_and_act, daemon=True).start()


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "gate")


@pytest.fixture
def lab(box: Box, tmp_path: Path) -> Iterator[Lab]:
    executor = RemoteExecutor("ssh://box", open_channel=box.open_channel)
    with Lab(tmp_path / "here", executor=executor, settings=Settings()) as lab:
        lab.op("softmax")
        lab.kernel("softmax", "v1", SOURCE)
        yield lab


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def pid_of_host(lab: Lab) -> int:
    """Validate, and return the number that the host prints then."""
    printed: list[str] = []
    lab.on_output = printed.append
    assert lab.validate("softmax", "v1").passed
    return int(printed[-1])


def test_a_job_goes_on_while_ssh_is_lost(box: Box, lab: Lab) -> None:
    box.during_a_job()
    pid = pid_of_host(lab)
    steps: list[str] = []
    lab.on_progress = lambda step: steps.append(step.stage)

    def lose() -> None:
        box.way.clear()
        box.cut()
        wait_until(lambda: steps)
        box.way.set()

    box.during_a_job(lose)
    assert pid_of_host(lab) == pid
    assert steps == ["connecting to box again", "connected to box again"]
    lab.close()
    wait_until(lambda: not is_alive(pid))


@pytest.mark.slow
def test_an_interrupt_ends_a_job_without_connection(box: Box, lab: Lab) -> None:
    def lose() -> None:
        box.way.clear()
        box.cut()
        lab.cancel()

    box.during_a_job(lose)
    with pytest.raises(Interrupted):
        lab.validate("softmax", "v1")
    assert "not connected" in str(lab.engine_state().device)
    box.way.set()
    box.during_a_job()
    assert lab.validate("softmax", "v1").passed
    assert len(box.links) == 2


@pytest.mark.slow
def test_a_host_that_has_ended_is_named(box: Box, lab: Lab) -> None:
    box.during_a_job()
    pid = pid_of_host(lab)
    box.during_a_job(lambda: os.kill(pid, 9))
    with pytest.raises(ServerLost, match="box does not know the session any more"):
        lab.validate("softmax", "v1", seed=2)
    box.during_a_job()
    assert pid_of_host(lab) != pid


@pytest.mark.slow
def test_a_host_ends_with_a_killed_notebook(box: Box, lab: Lab) -> None:
    box.during_a_job()
    pid = pid_of_host(lab)
    box.way.clear()
    link = box.links[-1]
    end, link.end = link.end, lambda wait_s=0.0: None  # type: ignore[method-assign]
    link.frames.close()  # a killed process says nothing, and its pipes close
    for pipe in link._pipes:
        pipe.close()
    wait_until(lambda: not is_alive(pid))
    end()


@pytest.mark.slow
def test_ssh_to_another_version_names_both(tmp_path: Path) -> None:
    box = Box(tmp_path / "gate", "9.9")
    with pytest.raises(Unavailable, match=r"box has triton_magics 9\.9, this is"):
        box.open_channel()
