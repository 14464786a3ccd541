"""Frames between a remote executor and its host: four bytes of length, then JSON."""

from __future__ import annotations

import os
import struct
import threading
from typing import Annotated, Literal, Protocol

from pydantic import Field, TypeAdapter

from triton_magics.execution.base import Device, JobState
from triton_magics.execution.job_requests import Job, Mode
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress, ProtocolError
from triton_magics.model import EngineState, Finding, OpFacts, Value

MAX_BYTES = 256 * 2**20  # a profile's report is the largest part of any frame
_HEADER = struct.Struct(">I")


class Hello(Value):
    """The first frame of a client; both sides must have the same version."""

    type: Literal["hello"] = "hello"
    version: str


class Welcome(Value):
    """The answer; of another version it has the version alone."""

    type: Literal["welcome"] = "welcome"
    version: str
    devices: tuple[Device, ...] = ()
    capacity: int = 1
    state: EngineState | None = None


class SubmitJob(Value):
    """A job to queue; limits of None are those of the host's settings."""

    type: Literal["submit"] = "submit"
    id: str
    job: Job
    device: str | None = None
    key: str = ""
    silence_s: float | None = None
    job_s: float | None = None


class CancelJob(Value):
    """A job to end."""

    type: Literal["cancel"] = "cancel"
    id: str


class PrepareWorkers(Value):
    """A request to prepare for jobs of a mode."""

    type: Literal["warm"] = "warm"
    mode: Mode | None = None


class Examine(Value):
    """A request to check the host's machine."""

    type: Literal["examine"] = "examine"
    ops: tuple[OpFacts, ...] = ()


class MachineFindings(Value):
    """The answer to `Examine`."""

    type: Literal["findings"] = "findings"
    findings: tuple[Finding, ...]


class EventOfJob(Value):
    """A change of state, a step or printed text of a job."""

    type: Literal["event"] = "event"
    id: str
    state: JobState | None = None
    progress: Progress | None = None
    output: str = ""


class EndOfJob(Value):
    """The outcome of a job, or the error that kept it from running."""

    type: Literal["end"] = "end"
    id: str
    outcome: Outcome | None = None
    error: str = ""
    message: str = ""


class StateOfHost(Value):
    """The state of the host's devices, whenever it changes."""

    type: Literal["state"] = "state"
    state: EngineState


RemoteFrame = (
    Hello | Welcome | SubmitJob | CancelJob | PrepareWorkers | Examine | MachineFindings
    | EventOfJob | EndOfJob | StateOfHost
)  # fmt: skip
_FRAMES: TypeAdapter[RemoteFrame] = TypeAdapter(Annotated[RemoteFrame, Field(discriminator="type")])


class RemoteStream(Protocol):
    """Frames in both directions; each method is safe in any thread."""

    def send(self, frame: RemoteFrame) -> None:
        """Send a frame, or queue it.

        Raises:
            OSError: the other side is gone.
        """

    def receive(self) -> RemoteFrame | None:
        """Wait for a frame; None at the end of the stream.

        Raises:
            ProtocolError: the other side sent something else.
        """

    def close(self) -> None:
        """Send nothing from now on; a second time does nothing."""


def read_frame(body: bytes | str) -> RemoteFrame:
    """Return the frame of its JSON.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _FRAMES.validate_json(body)
    except ValueError as error:
        raise ProtocolError(f"not a frame: {body[:80]!r}") from error


class FrameStream:
    """Frames over two descriptors; writing is safe in any thread.

    Args:
        read_fd: descriptor to read from; the caller closes it.
        write_fd: descriptor to write to.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd, self._write_fd = read_fd, write_fd
        self._lock = threading.Lock()
        self._is_closed = False

    def close(self) -> None:
        """Write nothing from now on: another file may get the number of a closed descriptor."""
        with self._lock:
            self._is_closed = True

    def send(self, frame: RemoteFrame) -> None:
        """Write a frame.

        Raises:
            OSError: the other side is gone.
        """
        body = frame.model_dump_json().encode()
        data = memoryview(_HEADER.pack(len(body)) + body)
        with self._lock:
            if self._is_closed:
                raise OSError("the stream is closed")
            while data:
                data = data[os.write(self._write_fd, data) :]

    def receive(self) -> RemoteFrame | None:
        """Read a frame; None at the end of the stream.

        Raises:
            ProtocolError: bytes that are no frame.
        """
        header = self._read(_HEADER.size)
        if header is None:
            return None
        (length,) = _HEADER.unpack(header)
        if length > MAX_BYTES:
            raise ProtocolError(f"not a frame: {header!r}")
        body = self._read(length)
        if body is None:
            return None
        return read_frame(body)

    def _read(self, n_bytes: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < n_bytes:
            try:
                part = os.read(self._read_fd, n_bytes - len(parts))
            except OSError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)


__all__ = [
    "CancelJob",
    "EndOfJob",
    "EventOfJob",
    "Examine",
    "FrameStream",
    "Hello",
    "MachineFindings",
    "PrepareWorkers",
    "RemoteFrame",
    "RemoteStream",
    "StateOfHost",
    "SubmitJob",
    "Welcome",
    "read_frame",
]
