"""The protocol between an executor and a worker: framed JSON, validated at both ends.

A frame is four bytes of length (big-endian) and that many bytes of UTF-8 JSON. The executor sends
jobs; a worker sends `ready`, `progress` and one `reply` for each job, each with the job's nonce.
Nothing is ever unpickled.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from triton_magics.execution import payloads
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_requests import Job
from triton_magics.model import (
    Case,
    CaseResult,
    Compilation,
    Configuration,
    Environment,
    Setting,
    Timing,
    Value,
)

MAX_FRAME_BYTES = 16 * 2**20
HEADER = struct.Struct(">I")
# Exit code of a worker that finds its connection closed (EX_PROTOCOL, sysexits.h).
CODE_CONNECTION_CLOSED = 76
WarmUpState = Literal["due", "postponed", "done"]


class Ready(Value):
    """A worker accepts jobs: imports and GPU context are done.

    Attributes:
        pid: of the judge.
        subject_pid: of its child that calls versions; None if it has none.
        helper_pids: of its children that run no version and wait for an order.
        warm_up: state of the warm-up jobs, a small validation and a small benchmark. `done`: they
            passed, so all modules are loaded. `due`: a second `Ready` follows unless a job comes
            first. `postponed`: other processes use the GPU.
    """

    type: Literal["ready"] = "ready"
    environment: Environment
    pid: int
    subject_pid: int | None = None
    helper_pids: tuple[int, ...] = ()
    warm_s: float
    warm_up: WarmUpState = "done"


class Order(Value):
    """A job for a worker."""

    type: Literal["order"] = "order"
    nonce: str
    job: Job


class Progress(Value):
    """A step of a job, with the results so far, so that a deadline or an interrupt loses none.

    Attributes:
        stage: worded to follow "while": `compiling for sm_90`.
        done: units of work that are done.
        total: units of work in all; 0 where it isn't known.
        budget_share: part of the job's budget that is spent, 0 to 1; 0 without a budget.
        patience_s: silence to allow until the next step, if longer than the user's limit; seconds.
        waits: the job waits for others until the next step; that time does not count as its own.
        environment: the machine and software.
        case: the case of this step.
        settings: the configuration of this step.
        planned: every case to run; sent once, before the first.
        case_result, timing, configuration: a result.
        compilation: the answer of a compilation, which goes on for a later validation: whoever
            waits for the answer has it.
    """

    type: Literal["progress"] = "progress"
    nonce: str
    stage: str
    done: int = 0
    total: int = 0
    budget_share: float = 0.0
    patience_s: float = 0.0
    waits: bool = False
    environment: Environment | None = None
    case: Case | None = None
    settings: dict[str, Setting] | None = None
    planned: tuple[CaseResult, ...] | None = None
    case_result: CaseResult | None = None
    timing: Timing | None = None
    configuration: Configuration | None = None
    compilation: Compilation | None = None


class Reply(Value):
    """The end of a job.

    Attributes:
        answer: its result.
        retire: this process must not run another job.
    """

    type: Literal["reply"] = "reply"
    nonce: str
    answer: Answer
    retire: bool = False


class Payload(Value):
    """Reference to the file with the content of a frame that is too large for the socket."""

    type: Literal["payload"] = "payload"
    name: str


Frame = Annotated[Ready | Order | Progress | Reply | Payload, Field(discriminator="type")]
_FRAME: TypeAdapter[Ready | Order | Progress | Reply | Payload] = TypeAdapter(Frame)


class ProtocolError(Exception):
    """Invalid bytes in place of a frame."""


def encode(frame: Ready | Order | Progress | Reply, scratch: Path | None = None) -> bytes:
    """Return the frame as bytes, header included.

    Args:
        frame: what to send.
        scratch: the worker's folder; a frame larger than `MAX_FRAME_BYTES` goes there.

    Raises:
        ProtocolError: too large.
    """
    body = frame.model_dump_json().encode()
    if len(body) > MAX_FRAME_BYTES:
        body = _reference_to(body, scratch)
    return HEADER.pack(len(body)) + body


def _reference_to(body: bytes, scratch: Path | None) -> bytes:
    if scratch is None:
        raise ProtocolError(_too_large(len(body)))
    try:
        return Payload(name=payloads.store(body, scratch)).model_dump_json().encode()
    except (OSError, ValueError) as error:
        raise ProtocolError(f"a frame of {len(body)} bytes can't be sent: {error}") from error


class FrameReader:
    """Splits a stream of bytes, in chunks of any size, into frames.

    Args:
        scratch: the worker's folder, for frames that are too large for the socket.
    """

    def __init__(self, scratch: Path | None = None) -> None:
        self._buffer = bytearray()
        self._scratch = scratch

    def feed(self, data: bytes) -> Iterator[Ready | Order | Progress | Reply]:
        """Yield the frames that are complete after these bytes.

        The frames before an invalid one are yielded first, so that they are not lost.

        Raises:
            ProtocolError: a length over the cap, or an invalid body.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(
                    f"a frame of {length} bytes exceeds the cap of {MAX_FRAME_BYTES}"
                )
            if len(self._buffer) < HEADER.size + length:
                break
            body = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            yield self._frame(body)

    def _frame(self, body: bytes) -> Ready | Order | Progress | Reply:
        frame = _decode(body)
        if isinstance(frame, Payload):
            frame = _decode(self._content_of(frame))
        if isinstance(frame, Payload):
            raise ProtocolError("a payload that refers to another payload")
        return frame

    def _content_of(self, payload: Payload) -> bytes:
        try:
            if self._scratch is None:
                raise ValueError("there is no folder for payloads")
            return payloads.take(payload.name, self._scratch)
        except (OSError, ValueError) as error:
            raise ProtocolError(f"not a frame: {error}") from error


def _too_large(n_bytes: int) -> str:
    return f"a frame of {n_bytes} bytes exceeds the cap of {MAX_FRAME_BYTES}"


def _decode(body: bytes) -> Ready | Order | Progress | Reply | Payload:
    try:
        return _FRAME.validate_json(body)
    except ValueError as error:
        raise ProtocolError(f"not a frame: {body[:80]!r} ({type(error).__name__})") from error


__all__ = [
    "FrameReader",
    "Order",
    "Progress",
    "ProtocolError",
    "Ready",
    "Reply",
    "WarmUpState",
    "encode",
]
