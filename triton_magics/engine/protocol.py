"""What the engine and a worker say to each other: framed JSON, checked at both ends.

A frame is four bytes of length (big-endian) and that many bytes of UTF-8 JSON. The engine sends
jobs; a worker sends `ready`, `progress` and one `reply` for each job, each with the job's nonce.
Nothing is unpickled, ever.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from triton_magics.model import (
    Benchmark,
    Case,
    CaseResult,
    Compilation,
    Configuration,
    DeviceKind,
    Environment,
    Plan,
    Replay,
    RunResult,
    SelfTest,
    Setting,
    Sweep,
    Timing,
    Validation,
    Value,
)

MAX_FRAME_BYTES = 16 * 2**20
HEADER = struct.Struct(">I")
# With this code a worker ends that finds its own connection closed under it (EX_PROTOCOL,
# sysexits.h).
CODE_CONNECTION_CLOSED = 76
Mode = Literal["gpu", "interpreter", "compiler"]
# A file in a worker's scratch folder: Python's stacks, once they were asked for (SIGURG).
WHERE = "where"
Rehearsal = Literal["due", "put off", "done"]
TimerName = Literal["gated", "graph", "launch"]


class OpRef(Value):
    """An op to be loaded: a built-in by its name, or the user's own by its file and sha256."""

    name: str
    path: str | None = None
    sha256: str | None = None


class VersionRef(Value):
    """A version to be loaded by its path; the hash must match the file's body."""

    version: str
    attempt: int
    path: str
    sha256: str
    entry: str
    header_lines: int
    cell_offset: int
    shown_path: str


class ValidateJob(Value):
    """Is this version right?"""

    kind: Literal["validate"] = "validate"
    op: OpRef
    version: VersionRef
    dtypes: tuple[str, ...] | None = None
    plan: Literal["full", "quick"] = "full"
    shapes: tuple[tuple[int, ...], ...] = ()
    own_shapes: tuple[tuple[int, ...], ...] = ()
    seed: int
    rtol: float | None = None
    atol: float | None = None
    sanitize: bool = False
    budget_s: float | None = None
    compile_s: float = 120.0


class BenchJob(Value):
    """How fast are these versions, beside torch?

    `sizes` may hold shapes as text (`257x1023`). `against` are providers beside the versions;
    `rivals`, those and versions, are whom every version is compared with.
    """

    kind: Literal["bench"] = "bench"
    op: OpRef
    versions: tuple[VersionRef, ...]
    sizes: tuple[str, ...]
    runs: int
    dtype: str
    against: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    cold: bool = True
    timer: TimerName = "gated"
    census: bool = False
    seed: int
    budget_s: float
    compile_s: float = 120.0


class SelfTestJob(Value):
    """Does the timing tell right from wrong on this GPU?"""

    kind: Literal["selftest"] = "selftest"
    seed: int = 0
    budget_s: float = 30.0
    compile_s: float = 120.0


class RunJob(Value):
    """Call it once, and once more."""

    kind: Literal["run"] = "run"
    op: OpRef
    version: VersionRef
    size: str | None = "small"
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    seed: int = 0
    inputs: str | None = None
    compile_s: float = 120.0


class CompileJob(Value):
    """Compile for a GPU that need not be there. `target` is a compute capability, 90 for sm_90.

    `here`: run it on this GPU and tell what its driver says of the kernels. `detail`: look at their
    instructions too; `listings`: give their code as text. `ahead`: compile as well what such a
    validation will launch, with shapes of the user's own, as far as that takes no longer.
    """

    kind: Literal["compile"] = "compile"
    op: OpRef
    version: VersionRef
    target: int = 90
    sm_count: int = 132
    sizes: tuple[str, ...] = ("small", "large")
    dtype: str = "float32"
    here: bool = False
    detail: bool = False
    listings: tuple[Literal["ptx", "sass"], ...] = ()
    ahead: Literal["quick", "full"] | None = None
    own_shapes: tuple[tuple[int, ...], ...] = ()
    compile_s: float = 120.0


class SweepPoint(Value):
    """A configuration to try: what it is set to, and the whole source with that."""

    settings: dict[str, Setting]
    source: str
    sha256: str


class SweepJob(Value):
    """Which of these configurations of a version are right, and how fast is each?

    `target` (90 for sm_90): compile for it and no more, where there is no GPU. `size` may be a
    shape as text.
    """

    kind: Literal["sweep"] = "sweep"
    op: OpRef
    version: VersionRef
    points: tuple[SweepPoint, ...]
    size: str
    dtype: str
    runs: int = 10
    cold: bool = True
    seed: int
    target: int | None = None
    compile_s: float = 120.0


class PlanJob(Value):
    """What would a validation run on such a device?"""

    kind: Literal["plan"] = "plan"
    op: OpRef
    dtypes: tuple[str, ...] | None = None
    plan: Literal["full", "quick"] = "full"
    shapes: tuple[tuple[int, ...], ...] = ()
    own_shapes: tuple[tuple[int, ...], ...] = ()
    seed: int
    device_kind: DeviceKind


class ReplayJob(Value):
    """Run one case in the interpreter: which line reads or writes outside its tensor?"""

    kind: Literal["replay"] = "replay"
    op: OpRef
    version: VersionRef
    case: Case


class DescribeJob(Value):
    """Load an op, call its reference once, say what it declares."""

    kind: Literal["describe"] = "describe"
    op: OpRef


class OpDescription(Value):
    """What an op's file declares, after its reference ran on a small input."""

    kind: Literal["description"] = "description"
    name: str
    sizes: dict[str, tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    signature: str
    doc: str
    outputs: tuple[str, ...]
    flops: int | None = None


class WorkerFault(Value):
    """The job could not be done for a reason that is not the version's: says what and where.

    `user` marks what the user can mend (an own op whose reference raises, a size that is unknown).
    """

    kind: Literal["fault"] = "fault"
    user: bool
    message: str
    traceback: str = ""


Job = Annotated[
    ValidateJob
    | ReplayJob
    | PlanJob
    | BenchJob
    | SelfTestJob
    | SweepJob
    | RunJob
    | CompileJob
    | DescribeJob,
    Field(discriminator="kind"),
]
Answer = Annotated[
    Validation
    | Replay
    | Plan
    | Benchmark
    | Sweep
    | SelfTest
    | RunResult
    | Compilation
    | OpDescription
    | WorkerFault,
    Field(discriminator="kind"),
]


class Ready(Value):
    """A worker can take jobs: imports done, context made.

    Attributes:
        rehearsal: of a validation and a benchmark in small. `done`: it is known to work, and a job
            finds all loaded. `due`: such a frame follows, unless a job comes. `put off`: as long as
            somebody else times on the GPU.
    """

    type: Literal["ready"] = "ready"
    environment: Environment
    pid: int
    warm_s: float
    rehearsal: Rehearsal = "done"


class Order(Value):
    """A job for a worker."""

    type: Literal["order"] = "order"
    nonce: str
    job: Job


class Progress(Value):
    """A step of a job.

    `patience_s` is how long the next step may stay silent, where that is longer than the user's own
    limit. `waits`: for others, until the next step; that is not the job's own time. `planned` comes
    once, before the first case; `case`, `timing` and `configuration` carry what is already known,
    so that a deadline or an interrupt loses nothing.
    """

    type: Literal["progress"] = "progress"
    nonce: str
    stage: str
    done: int = 0
    total: int = 0
    patience_s: float = 0.0
    waits: bool = False
    environment: Environment | None = None
    planned: tuple[CaseResult, ...] | None = None
    case: CaseResult | None = None
    timing: Timing | None = None
    configuration: Configuration | None = None


class Reply(Value):
    """The end of a job. `retire`: this process must not be used again."""

    type: Literal["reply"] = "reply"
    nonce: str
    answer: Answer
    retire: bool = False


Frame = Annotated[Ready | Order | Progress | Reply, Field(discriminator="type")]
_FRAME: TypeAdapter[Ready | Order | Progress | Reply] = TypeAdapter(Frame)


class ProtocolError(Exception):
    """Bytes that are no frame of ours."""


def encode(frame: Ready | Order | Progress | Reply) -> bytes:
    """The frame as bytes, header included.

    Raises:
        ProtocolError: larger than `MAX_FRAME_BYTES`.
    """
    body = frame.model_dump_json().encode()
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError(f"a frame of {len(body)} bytes is over the cap of {MAX_FRAME_BYTES}")
    return HEADER.pack(len(body)) + body


class FrameReader:
    """Turns a stream of bytes into frames, whatever pieces it comes in."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Ready | Order | Progress | Reply]:
        """The frames that are complete after these bytes, as they are iterated over.

        What came before a bad frame is given before the error, so that it is not lost with it.

        Raises:
            ProtocolError: a length over the cap, or a body that is no frame.
        """
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._buffer)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(f"a frame of {length} bytes is over the cap")
            if len(self._buffer) < HEADER.size + length:
                break
            body = bytes(self._buffer[HEADER.size : HEADER.size + length])
            del self._buffer[: HEADER.size + length]
            yield _decode(body)


def _decode(body: bytes) -> Ready | Order | Progress | Reply:
    try:
        return _FRAME.validate_json(body)
    except ValueError as error:
        raise ProtocolError(f"not a frame: {body[:80]!r} ({type(error).__name__})") from error


__all__ = [
    "Answer",
    "BenchJob",
    "CompileJob",
    "DescribeJob",
    "DeviceKind",
    "FrameReader",
    "Job",
    "Mode",
    "OpDescription",
    "OpRef",
    "Order",
    "PlanJob",
    "Progress",
    "ProtocolError",
    "Ready",
    "Rehearsal",
    "ReplayJob",
    "Reply",
    "RunJob",
    "SelfTestJob",
    "SweepJob",
    "SweepPoint",
    "TimerName",
    "ValidateJob",
    "VersionRef",
    "WorkerFault",
    "encode",
]  # fmt: skip
