"""States of ops, versions and workers, exports, and the events that states follow from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from triton_magics.model.badge import Badge
from triton_magics.model.base import Clock, DeviceKind, Status, Value, short
from triton_magics.model.benchmark import Benchmark, RunResult
from triton_magics.model.coverage import Coverage
from triton_magics.model.environment import Environment
from triton_magics.model.gap import Gap, GapCode, validation_gap
from triton_magics.model.knowledge import OpFacts, Technique, TorchSource
from triton_magics.model.profile import Profile
from triton_magics.model.source import Compilation, KernelSource
from triton_magics.model.sweep import Sweep
from triton_magics.model.validation import Validation
from triton_magics.next_step import NextStep


class VersionState(Value):
    """A version as it stands: its newest attempt, verdict and time.

    `current`: of the op's versions the one written last. `counted`: written since the last reset,
    so that it counts towards the versions that must be written. `coverage`: of the validation that
    stands. `by_hand`: why a person chose it as the best, whatever the benchmark says.
    """

    version: str
    attempt: int
    attempts_failed: int = 0
    exhausted: bool = False
    entry: str
    language: str = "triton"
    path: str
    sha256: str
    technique: str | None = None
    validation: Status | None = None
    validation_device: DeviceKind | None = None
    coverage: Coverage | None = None
    cases: str | None = None
    final_us: float | None = None
    means_us: dict[str, float] = Field(default_factory=dict)
    clock: Clock | None = None
    speedup: float | None = None
    badges: tuple[Badge, ...] = ()
    best: bool = False
    by_hand: str | None = None
    compilation: Status | None = None
    current: bool = False
    counted: bool = True

    @property
    def validation_gap(self) -> Gap | None:
        """First reason why the version is not validated in full; None where it is."""
        return validation_gap(
            self.version,
            self.validation,
            self.coverage,
            self.badges,
            compilation=self.compilation,
        )

    @property
    def is_timed(self) -> bool:
        """True with every size of the op on a GPU; the interpreter can't afford the large ones."""
        interpreted = self.clock == "interpreter" and bool(self.means_us)
        return self.final_us is not None or interpreted

    @property
    def gap(self) -> Gap | None:
        """First thing that the version lacks; None where it is validated in full and timed."""
        untimed = None if self.is_timed else Gap(code=GapCode.NOT_TIMED, version=self.version)
        return self.validation_gap or untimed


State = Literal["start", "write", "evaluation", "end"]


class OpState(Value):
    """An op's state, the verbs that are allowed now, and its versions.

    `missing`: all that the op lacks before its end; empty at its end, and only there.
    `version_to_write`: the one that is missing or has to be repaired; None where none has.
    """

    kind: Literal["op_state"] = "op_state"
    op: str
    state: State
    allowed: tuple[str, ...]
    next_step: NextStep
    missing: tuple[Gap, ...] = ()
    version_to_write: str | None = None
    min_writes: int
    versions: tuple[VersionState, ...] = ()
    n_events: int = 0

    @property
    def is_done(self) -> bool:
        """True at the end of the workflow."""
        return self.state == "end"

    def version(self, name: str) -> VersionState | None:
        """Return the version called `v2` or `v2_tiling`."""
        hits = (v for v in self.versions if name in (v.version, short(v.version)))
        return next(hits, None)


class WorkerState(Value):
    """A worker process; `current`: it has run a version's code and goes on with that alone."""

    role: Literal["standby", "current"]
    mode: str
    ready: bool
    pid: int | None = None

    @property
    def description(self) -> str:
        """`ready, process 1234`."""
        state = "ready" if self.ready else "warming up"
        return f"{state}, process {self.pid}" if self.pid else state


class DeviceState(Value):
    """A device and its jobs.

    Attributes:
        id: a GPU's UUID, or `interpreter`.
        running: labels of the jobs that run on it, such as `validate softmax v2_tiling`.
        waiting: number of jobs that wait for it.
    """

    id: str
    name: str
    running: tuple[str, ...] = ()
    waiting: int = 0


class EngineState(Value):
    """Device and workers that run kernels, and the job that they run now.

    Attributes:
        environment: of the last worker that got ready; None before the first.
        devices: all that jobs may run on, the default one first.
    """

    device_kind: DeviceKind | None
    device: str
    standby_ready: bool = False
    busy: str | None = None
    missing: str | None = None
    workers: tuple[WorkerState, ...] = ()
    environment: Environment | None = None
    devices: tuple[DeviceState, ...] = ()


class LabState(Value):
    """Every op of the workspace, and the engine."""

    kind: Literal["lab_state"] = "lab_state"
    workspace: str
    ops: tuple[OpState, ...]
    engine: EngineState


class OpPage(Value):
    """Page of an op: facts, techniques, state, engine.

    Attributes:
        torch_docs: address of the documentation of its torch function; None: it has none.
        torch_sources: torch's own Python source of it; None where nobody asked for it.
    """

    kind: Literal["op_page"] = "op_page"
    facts: OpFacts
    techniques: tuple[Technique, ...]
    state: OpState
    engine: EngineState
    own_shapes: tuple[tuple[int, ...], ...] = ()
    torch_docs: str | None = None
    torch_sources: tuple[TorchSource, ...] | None = None


class Reference(Value):
    """A piece of the knowledge base, or the hits of a search in it."""

    kind: Literal["reference"] = "reference"
    query: str
    title: str
    markdown: str
    more: tuple[str, ...] = ()


class Template(Value):
    """A starting point for a version; `path` is the file that it was written into, if any."""

    kind: Literal["template"] = "template"
    pattern: str
    op: str
    version: str
    source: str
    language: str = "triton"
    path: str | None = None


class Best(Value):
    """The version to ship, and why; `installed` is the folder of the package with it, if any."""

    kind: Literal["best"] = "best"
    source: KernelSource
    final_us: float | None = None
    speedup: float | None = None
    geomean_speedup: float | None = None
    provisional: str | None = None
    by_hand: bool = False
    reason: str
    installed: str | None = None


class Export(Value):
    """Files that a log was written to; paths relative to the workspace."""

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


RecordedResult = Annotated[
    Validation | Benchmark | Sweep | RunResult | Compilation | Best | Profile,
    Field(discriminator="kind"),
]
Verb = Literal[
    "shown", "defined", "written", "compiled", "ran", "validated", "benchmarked", "swept", "chosen",
    "forced", "reset", "exported", "sized", "noted", "profiled",
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
    result: RecordedResult | None = None
