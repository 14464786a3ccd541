"""The executor's side of one worker process: its socket, its output, its exit status.

This module only records what a worker sends; the caller interprets it.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from triton_magics.execution.job_requests import Mode
from triton_magics.execution.local.captured_output import Output
from triton_magics.execution.protocol import (
    FrameReader,
    Order,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    encode,
)
from triton_magics.execution.scratch import STACK

CHUNK_BYTES = 2**18
DRAIN_CHUNKS = 256  # more than a socket or a pipe holds; a bound in case a writer survived its kill
SEND_S = 10.0
STACK_BYTES = 2**16
MAX_COMPILE_PROCESSES = 32  # whose stacks are read


@dataclass(frozen=True)
class Exit:
    """The end of a process: an exit code, a signal, or an error.

    Attributes:
        code: exit code.
        signal: number of the signal that ended it.
        error: why it did not start, or was killed.
        over: the limit that it exceeded, `memory` or `processes`; see `error`.
        ours: the executor ended it, whatever it ran.
    """

    code: int | None = None
    signal: int | None = None
    error: str | None = None
    over: str | None = None
    ours: bool = False

    def __str__(self) -> str:
        if self.signal is not None:
            return _signal_name(self.signal)
        return self.error or f"exit code {self.code}"


def _read(path: Path) -> str | None:
    """Read the start of a file; refuse links and pipes that code under test may have put there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            content = file.read(STACK_BYTES) or b""  # None: a pipe with an open writer
            return content.decode(errors="replace")
    except OSError:
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Worker:
    """One worker process.

    Attributes:
        number: its id in commands to the supervisor.
        mode: its kind.
        pid: None until it has started.
        watchdog: pid of its parent, if it was forked.
        ready: its latest `Ready` frame; None before the first.
        frames: later frames that the caller has not handled.
        output: printed text.
        protocol_error: why its stream is invalid; nothing is read from then on.
        eof_at: time at which its data socket was closed (time.monotonic), seconds.
        exit: its end; set once all its processes are gone.
        key: hash of the code that it has run.
        scratch: its folder, which is removed with it; None if it has none.
        is_confined: it is in the sandbox, if there is one. One that is not serves one job, or only
            starts tools.
    """

    def __init__(
        self,
        number: int,
        mode: Mode,
        data: socket.socket,
        output_fd: int,
        *,
        scratch: Path | None = None,
    ) -> None:
        self.number = number
        self.mode = mode
        self.scratch = scratch
        self.started_at = time.monotonic()
        self.pid: int | None = None
        self.watchdog: int | None = None
        self.ready: Ready | None = None
        self.frames: deque[Progress | Reply | Ready | Order] = deque()
        self.output = Output()
        self.protocol_error: str | None = None
        self.eof_at: float | None = None
        self.exit: Exit | None = None
        self.key = ""
        self.is_confined = True
        self._closed = False
        self._busy = False
        self._reader = FrameReader(scratch)
        self._data = data
        self._output_fd: int | None = output_fd

    @property
    def is_usable(self) -> bool:
        """True if it can run a job, now or once it is ready."""
        return self.exit is None and self.protocol_error is None and self.eof_at is None

    @property
    def is_warm(self) -> bool:
        """True once its warm-up is done; it may have run a job before."""
        return self.ready is not None and self.ready.warm_up == "done"

    @property
    def subject_pid(self) -> int | None:
        """The pid of its child that calls versions; None if it has none, or is not ready."""
        return self.ready.subject_pid if self.ready else None

    @property
    def helper_pids(self) -> tuple[int, ...]:
        """The pids of its children that run no version and wait for an order."""
        return self.ready.helper_pids if self.ready else ()

    @property
    def _is_listening(self) -> bool:
        return not self._closed and (self._busy or not self.is_warm)

    def sources(self) -> dict[int, Callable[[], object]]:
        """Return the descriptors to wait for, each with its reader.

        An idle worker is not read, so that unrequested data fills its own socket, not our memory.
        """
        sources: dict[int, Callable[[], object]] = {}
        if self._is_listening and self.is_usable:
            sources[self._data.fileno()] = self._read_data
        if self._is_listening and self._output_fd is not None:
            sources[self._output_fd] = self._read_output
        return sources

    def send(self, order: Order) -> None:
        """Send it a job and drop its earlier output.

        A worker that has ended or does not read is no error here; its exit or silence shows it.
        """
        self.output = Output()
        self._busy = True
        self._data.settimeout(SEND_S)
        try:
            self._data.sendall(encode(order, self.scratch))
        except OSError:
            self.protocol_error = "it did not accept the job"
        self._data.setblocking(False)

    @property
    def stack(self) -> str | None:
        """The stacks that it has written, and those of its compile processes; None if it can't."""
        stack = _read(self.scratch / STACK) if self.scratch else None
        if not stack or self.scratch is None:  # stacks of other processes are not its own
            return stack
        others = sorted(self.scratch.glob(f"{STACK}.*"))[:MAX_COMPILE_PROCESSES]
        return stack + "".join(_read(path) or "" for path in others)

    def read_output(self) -> None:
        """Read what it printed before its latest frame."""
        self._read_output()  # a pipe holds less than one chunk

    def set_idle(self) -> None:
        """Read what it printed before its reply; it is idle from now on."""
        self.read_output()
        self._busy = False

    def set_exit(self, how: Exit) -> None:
        """Read its remaining data and output, then set its exit."""
        self._drain(self._read_data)
        self._drain(self._read_output)
        self.exit = how

    def close(self) -> None:
        """Close this side's descriptors."""
        self._closed = True
        self._data.close()
        if self._output_fd is not None:
            os.close(self._output_fd)
            self._output_fd = None

    def _drain(self, read: Callable[[], bool]) -> None:
        for _ in range(DRAIN_CHUNKS):
            if not read():
                break

    def _read_data(self) -> bool:
        """Read a chunk; return True if there may be more."""
        if not self.is_usable:
            return False
        try:
            data = self._data.recv(CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # reset by the peer's death: its end
            data = b""
        if not data:
            self.eof_at = time.monotonic()
            return False
        return self._parse(data)

    def _parse(self, data: bytes) -> bool:
        try:
            for frame in self._reader.feed(data):
                self._accept(frame)
        except ProtocolError as error:
            self.protocol_error = str(error)
        return self.protocol_error is None

    def _accept(self, frame: Progress | Reply | Ready | Order) -> None:
        if isinstance(frame, Ready) and not self.is_warm:
            self.ready = frame
        elif self.ready is not None:
            self.frames.append(frame)
        else:
            raise ProtocolError(f"its first frame is {frame.type}, not ready")

    def _read_output(self) -> bool:
        if self._output_fd is None:
            return False
        try:
            data = os.read(self._output_fd, CHUNK_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.output.feed(data)
        else:
            os.close(self._output_fd)
            self._output_fd = None
        return bool(data)


__all__ = ["Exit", "Worker"]
