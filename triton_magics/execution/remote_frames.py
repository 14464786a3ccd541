"""Frames between a remote executor and its host."""

from __future__ import annotations

import sys
from typing import Annotated, Literal, Protocol

from pydantic import ConfigDict, Field, TypeAdapter

from triton_magics.execution.base import Device, JobState
from triton_magics.execution.job_requests import Job, Mode
from triton_magics.execution.outcome import Outcome
from triton_magics.execution.protocol import Progress, ProtocolError
from triton_magics.model import EngineState, Finding, OpFacts, Value


class Attach(Value):
    """The first frame of a connection by ssh.

    Attributes:
        session: chosen by the client, and no one can guess it.
        after: number of the newest frame of this session that the client has.
    """

    type: Literal["attach"] = "attach"
    version: str
    session: str = Field(pattern="^[0-9a-f]{32}$")
    after: int = Field(0, ge=0)


class Attached(Value):
    """The answer to `Attach`; another version reads it too.

    Attributes:
        after: number of the newest frame that the host has.
        is_known: False where the session has ended.
    """

    model_config = ConfigDict(extra="ignore")
    type: Literal["attached"] = "attached"
    version: str
    after: int = 0
    is_known: bool = True


class Leave(Value):
    """The last frame of a client: its session ends, and the jobs with it."""

    type: Literal["leave"] = "leave"


class Hello(Value):
    """The first frame of a session; both sides must have the same version."""

    model_config = ConfigDict(extra="ignore")
    type: Literal["hello"] = "hello"
    version: str


class Welcome(Value):
    """The answer; of another version it has the version alone."""

    model_config = ConfigDict(extra="ignore")
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


class ConnectionState(Value):
    """A frame that a client's stream puts before its reader: the connection is lost, or back."""

    type: Literal["connection"] = "connection"
    is_connected: bool


RemoteFrame = (
    Attach | Attached | Leave | ConnectionState | Hello | Welcome | SubmitJob | CancelJob
    | PrepareWorkers | Examine | MachineFindings | EventOfJob | EndOfJob | StateOfHost
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


def package_version() -> str:
    """Return the version of this package."""
    version: str = sys.modules["triton_magics"].__version__
    return version


def read_frame(body: bytes | str) -> RemoteFrame:
    """Return the frame of its JSON.

    Raises:
        ProtocolError: it is none.
    """
    try:
        return _FRAMES.validate_json(body)
    except ValueError as error:
        raise ProtocolError(f"not a frame: {body[:80]!r}") from error


__all__ = [
    "Attach",
    "Attached",
    "CancelJob",
    "ConnectionState",
    "EndOfJob",
    "EventOfJob",
    "Examine",
    "Hello",
    "Leave",
    "MachineFindings",
    "PrepareWorkers",
    "RemoteFrame",
    "RemoteStream",
    "StateOfHost",
    "SubmitJob",
    "Welcome",
    "package_version",
    "read_frame",
]
