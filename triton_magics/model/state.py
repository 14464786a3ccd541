"""Where ops stand, what was chosen and exported, and the events it all follows from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from triton_magics.model.base import Clock, DeviceKind, Status, Value, short
from triton_magics.model.benchmark import Benchmark, RunResult
from triton_magics.model.environment import Environment
from triton_magics.model.knowledge import OpFacts, Technique
from triton_magics.model.source import Compilation, KernelSource
from triton_magics.model.sweep import Sweep
from triton_magics.model.validation import Validation


class VersionState(Value):
    """A version as it stands: its newest attempt, verdict and time.

    `current`: of the op's versions the one written last. `counted`: written since the last reset,
    so that it counts towards the versions that must be written. `by_hand`: why a person chose it as
    the best, whatever the benchmark says.
    """

    version: str
    attempt: int
    attempts_failed: int = 0
    exhausted: bool = False
    entry: str
    path: str
    sha256: str
    technique: str | None = None
    validation: Status | None = None
    validation_device: DeviceKind | None = None
    validation_plan: str | None = None
    cases: str | None = None
    final_us: float | None = None
    means_us: dict[str, float] = Field(default_factory=dict)
    clock: Clock | None = None
    speedup: float | None = None
    badges: tuple[str, ...] = ()
    best: bool = False
    by_hand: str | None = None
    compilation: Status | None = None
    current: bool = False
    counted: bool = True


State = Literal["start", "write", "evaluation", "end"]


class OpState(Value):
    """Where an op stands: its state, what is allowed now, its versions."""

    kind: Literal["op_state"] = "op_state"
    op: str
    state: State
    allowed: tuple[str, ...]
    next_step: str
    min_writes: int
    versions: tuple[VersionState, ...] = ()
    n_events: int = 0

    def version(self, name: str) -> VersionState | None:
        """The version called `v2` or `v2_tiling`."""
        hits = (v for v in self.versions if name in (v.version, short(v.version)))
        return next(hits, None)


class WorkerState(Value):
    """A worker process; `current`: it has run a version's code and goes on with that alone."""

    role: Literal["standby", "current"]
    mode: str
    ready: bool
    pid: int | None = None

    @property
    def words(self) -> str:
        """`ready, process 1234`."""
        state = "ready" if self.ready else "warming up"
        return f"{state}, process {self.pid}" if self.pid else state


class EngineState(Value):
    """What is there to run kernels with, and what it is doing.

    `environment`: of the last worker that got ready; None before the first.
    """

    device_kind: DeviceKind | None
    device: str
    standby_ready: bool = False
    busy: str | None = None
    missing: str | None = None
    workers: tuple[WorkerState, ...] = ()
    environment: Environment | None = None


class LabState(Value):
    """Every op of the workspace, and the engine."""

    kind: Literal["lab_state"] = "lab_state"
    workspace: str
    ops: tuple[OpState, ...]
    engine: EngineState


class OpPage(Value):
    """What `%triton_op` shows: facts, techniques, state, engine."""

    kind: Literal["op_page"] = "op_page"
    facts: OpFacts
    techniques: tuple[Technique, ...]
    state: OpState
    engine: EngineState
    own_shapes: tuple[tuple[int, ...], ...] = ()


class Reference(Value):
    """A piece of the knowledge base, or what a search found in it."""

    kind: Literal["reference"] = "reference"
    query: str
    title: str
    markdown: str
    more: tuple[str, ...] = ()


class Template(Value):
    """A starting point for a cell; `cell` is what to put into the notebook.

    `path` is the file that it was written into, if any.
    """

    kind: Literal["template"] = "template"
    pattern: str
    op: str
    version: str
    source: str
    path: str | None = None

    @property
    def cell(self) -> str:
        """The whole cell, magic included."""
        return f"%%triton_kernel {self.op} {self.version}\n{self.source}"


class Best(Value):
    """The version to ship, and why."""

    kind: Literal["best"] = "best"
    source: KernelSource
    final_us: float | None = None
    speedup: float | None = None
    geomean_speedup: float | None = None
    provisional: str | None = None
    by_hand: bool = False
    reason: str


class Export(Value):
    """Where a log was written; paths relative to the workspace."""

    kind: Literal["export"] = "export"
    op: str
    workspace: str
    markdown: str
    notebook: str
    html: str | None = None
    jsonl: str
    tests: str | None = None
    note: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that was written."""
        files: Iterable[str | None] = (
            self.markdown, self.notebook, self.html, self.jsonl, self.tests,
        )  # fmt: skip
        return tuple(f"{self.workspace}/{p}" for p in files if p)


Result = Annotated[
    Validation | Benchmark | Sweep | RunResult | Compilation | Best, Field(discriminator="kind")
]
Verb = Literal[
    "shown", "defined", "written", "compiled", "ran", "validated", "benchmarked", "swept", "chosen",
    "forced", "reset", "exported", "sized",
]  # fmt: skip


class Event(Value):
    """Something that happened to an op. The log of these is the truth; all else is derived."""

    uuid: str
    time: str
    op: str
    verb: Verb
    version: str | None = None
    attempt: int | None = None
    state_before: State
    state_after: State
    args: dict[str, Any] = Field(default_factory=dict)
    source: KernelSource | None = None
    reference: str | None = None
    facts: OpFacts | None = None
    result: Result | None = None
