"""The supervisor as a process: its start, the commands to it, its answers, and its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triton_magics.errors import WorkerError
from triton_magics.execution.local.supervisor.process_table import is_stopped
from triton_magics.execution.local.worker_process import CHUNK_BYTES, SEND_S, Exit

CLOSE_S = 5.0
# An idle supervisor answers a ping in 1 ms; a fork server that hangs makes it wait 5 s.
RESUME_S = 1.0  # without an answer, it may have been stopped (SIGSTOP): continue it
ANSWER_S = 10.0  # without an answer, it is replaced
_PACKAGE = Path(__file__).with_name("supervisor")


class SupervisorProcess:
    """The process and the channel to it.

    Not thread-safe, except for `hang_up`.

    Attributes:
        is_lost: it has ended or does not respond.
    """

    def __init__(
        self,
        home: Path,
        env: Mapping[str, str],
        *,
        on_answer: Callable[[dict[str, Any]], None],
        on_loss: Callable[[Exit], None],
    ) -> None:
        """Start it.

        Args:
            home: the folder for its workers' scratch folders; it removes the folder at its end.
            env: its environment.
            on_answer: takes an answer, but for those to pings.
            on_loss: takes how its workers end, because it is lost.

        Raises:
            WorkerError: it could not be started.
        """
        self.is_lost = False
        self._on_answer, self._on_loss = on_answer, on_loss
        self._hung_up = False
        self._buffer = b""
        self._pinged_at: float | None = None  # the oldest ping without an answer
        self._owner = os.getpid()
        self._control, theirs = socket.socketpair()
        try:
            self._process = _start(theirs, home, env)
        except OSError as error:
            self._control.close()
            raise WorkerError(f"the supervisor process could not be started: {error}") from error
        finally:
            theirs.close()
        self._control.setblocking(False)

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._process.pid

    @property
    def is_foreign(self) -> bool:
        """True in a forked copy of the process that started it."""
        return os.getpid() != self._owner

    def fileno(self) -> int:
        """Return the descriptor that is readable when there are answers."""
        return self._control.fileno()

    def command(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Send a command with descriptors; `check_response` finds that nobody reads it."""
        self._send(command, descriptors)
        self.ping()

    def ping(self) -> None:
        """Ask for a sign of life; `check_response` checks that it comes."""
        if self._pinged_at is None and not self.is_lost:
            self._pinged_at = time.monotonic()
            self._send({"do": "ping"})

    def longest_wait_s(self, wait_s: float) -> float:
        """Return how long to wait for answers, of that time, before `check_response`."""
        return wait_s if self._pinged_at is None else min(wait_s, RESUME_S)

    def check_response(self) -> None:
        """Continue a process that may be stopped; give up one that does not respond."""
        if self._pinged_at is None or self.is_lost or self.is_foreign:
            return
        silence_s = time.monotonic() - self._pinged_at
        if silence_s > ANSWER_S:
            self._give_up(Exit(error="its supervisor did not respond and was replaced", ours=True))
        elif silence_s > RESUME_S:
            self._process.send_signal(signal.SIGCONT)

    def read_answers(self) -> None:
        """Read the answers that have come."""
        try:
            data = self._control.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._give_up()
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if "pong" in answer:
                self._pinged_at = None
            else:
                self._on_answer(answer)

    def hang_up(self) -> None:
        """Make it kill all processes and end; safe in any thread."""
        if not self.is_foreign:
            self._hung_up = True
            self._process.send_signal(signal.SIGCONT)  # a stopped one could not end its workers
            try:
                self._control.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has ended already
                self.is_lost = True

    def close(self) -> None:
        """Wait for its end after `hang_up`; a forked copy only closes its own descriptor."""
        self.is_lost = True
        self._control.close()
        if self.is_foreign:
            self._process.returncode = 0  # not our child: there is nothing to wait for
        else:
            self._wait()

    def _wait(self) -> None:
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            if is_stopped(self.pid):
                self._process.kill()
                self._process.wait()
            else:
                # A worker hangs in a driver; the supervisor ends by itself, 10 s after the hang-up.
                self._process.returncode = 0

    def _send(self, command: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        line = json.dumps(command).encode() + b"\n"
        self._control.settimeout(SEND_S)
        try:
            sent = socket.send_fds(self._control, [line], descriptors)
            self._control.sendall(line[sent:])
        except OSError:
            self._give_up()
        else:
            self._control.setblocking(False)

    def _give_up(self, how: Exit | None = None) -> None:
        """Give it up; its workers die with it (PR_SET_PDEATHSIG)."""
        self.is_lost = True
        if self._hung_up:
            how = Exit(error="the executor was closed", ours=True)
        self._on_loss(how or Exit(error="its supervisor process ended"))


def _start(control: socket.socket, home: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-I", "-S", str(_PACKAGE)]
    notebook = _own_pidfd()
    try:
        return subprocess.Popen(
            [*argv, str(control.fileno()), str(notebook), home],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd="/",
            pass_fds=[fd for fd in (control.fileno(), notebook) if fd >= 0],
            start_new_session=True,
        )
    finally:
        if notebook >= 0:
            os.close(notebook)


def _own_pidfd() -> int:
    """Return a descriptor that is readable at this process's end; -1 on a kernel before 5.3.

    End-of-file on the control socket is not enough: a process that the user forked has a copy.
    """
    try:
        return os.pidfd_open(os.getpid())
    except OSError:
        return -1


__all__ = ["SupervisorProcess"]
