"""The notebook's side of one worker process: its socket, its output, its end.

Nothing here decides anything: what comes in is noted, what it means is the caller's business.
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

from triton_magics.engine.output import Output
from triton_magics.engine.protocol import (
    WHERE,
    FrameReader,
    Mode,
    Order,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    encode,
)

CHUNK_BYTES = 2**18
DRAIN_CHUNKS = 256  # more than a socket or a pipe holds; a bound in case a writer survived its kill
SEND_S = 10.0
STACK_BYTES = 2**16
MOST_BESIDE = 32  # processes that compile for it


@dataclass(frozen=True)
class Exit:
    """How a process ended: by itself with a code, by a signal, or without having started.

    Attributes:
        over: what it had too much of, `memory` or `processes`, and was killed for; see `error`.
        ours: we ended it with all the others, which says nothing of what it ran.
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
    """The beginning of a file in whose place code under test may have put anything."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            told = file.read(STACK_BYTES) or b""  # None: a pipe that somebody may still write to
            return told.decode(errors="replace")
    except OSError:
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Worker:
    """One worker process, and what is known of it.

    Attributes:
        guard: the process between the nanny and it, if it was forked.
        ready: its first frame, or the second, once it has rehearsed; None while it warms up.
        frames: what it has sent since, not yet looked at.
        broken: why what it sends can't be understood; nothing is read from then on.
        eof_at: when its data socket was found closed (time.monotonic), seconds.
        exit: how it ended; set once nothing of its tree is left.
        key: whose code it has run.
        scratch: its folder, which goes with it; None where it has none.
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
        self.guard: int | None = None
        self.ready: Ready | None = None
        self.frames: deque[Progress | Reply | Ready | Order] = deque()
        self.output = Output()
        self.broken: str | None = None
        self.eof_at: float | None = None
        self.exit: Exit | None = None
        self.key = ""
        self._closed = False
        self._busy = False
        self._reader = FrameReader()
        self._data = data
        self._output_fd: int | None = output_fd

    @property
    def usable(self) -> bool:
        """Whether it may still be given a job, now or once it is ready."""
        return self.exit is None and self.broken is None and self.eof_at is None

    @property
    def rehearsed(self) -> bool:
        """Whether it is as warm as it gets; it may have been given a job before that."""
        return self.ready is not None and self.ready.rehearsal == "done"

    @property
    def _listening(self) -> bool:
        return not self._closed and (self._busy or not self.rehearsed)

    def sources(self) -> dict[int, Callable[[], object]]:
        """Descriptors worth waiting for, each with what reads it.

        An idle worker is not read, so that one that talks unasked fills its own socket, not our
        memory.
        """
        sources: dict[int, Callable[[], object]] = {}
        if self._listening and self.usable:
            sources[self._data.fileno()] = self._read_data
        if self._listening and self._output_fd is not None:
            sources[self._output_fd] = self._read_output
        return sources

    def send(self, order: Order) -> None:
        """Gives it a job, and forgets what it printed before.

        A worker that is dead or deaf shows as that soon enough; here it is no error.
        """
        self.output = Output()
        self._busy = True
        self._data.settimeout(SEND_S)
        try:
            self._data.sendall(encode(order))
        except OSError:
            self.broken = "it took no orders"
        self._data.setblocking(False)

    @property
    def stack(self) -> str | None:
        """What it has written of where it is; None where it can't."""
        told = _read(self.scratch / WHERE) if self.scratch else None
        if not told or self.scratch is None:  # deaf: what others do meanwhile is not its place
            return told
        beside = sorted(self.scratch.glob(f"{WHERE}.*"))[:MOST_BESIDE]
        return told + "".join(_read(path) or "" for path in beside)

    def rest(self) -> None:
        """Reads what it printed before its reply; from here on it is idle."""
        self._read_output()  # a pipe holds less than one chunk
        self._busy = False

    def end(self, how: Exit) -> None:
        """Notes its end, after reading what it had still said."""
        self._drain(self._read_data)
        self._drain(self._read_output)
        self.exit = how

    def close(self) -> None:
        """Closes this side's descriptors."""
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
        """Whether there may be more."""
        if not self.usable:
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
        return self._understand(data)

    def _understand(self, data: bytes) -> bool:
        try:
            for frame in self._reader.feed(data):
                self._accept(frame)
        except ProtocolError as error:
            self.broken = str(error)
        return self.broken is None

    def _accept(self, frame: Progress | Reply | Ready | Order) -> None:
        if isinstance(frame, Ready) and not self.rehearsed:
            self.ready = frame
        elif self.ready is not None:
            self.frames.append(frame)
        else:
            raise ProtocolError(f"its first frame was {frame.type}, not ready")

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
