"""The values that everything passes on: one vocabulary for disk, pipe and screen.

Every value is frozen and built whole. What was not measured is `None`, never 0 or inf. A kernel that
fails is a *status*, never an exception. Times end in their unit. Derived figures are properties, so
that the JSON holds only what was seen.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from triton_magics import roofline, stats
from triton_magics.errors import BadName, UnknownVersion

SIZES = ("small", "medium", "large")
SLUGS = {1: "baseline", 2: "tiling", 3: "coalesced", 4: "optimized"}
_OP_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_VERSION_NAME = re.compile(r"v([1-9][0-9]{0,3})(?:_([a-z0-9][a-z0-9_]{0,63}))?")

DeviceKind = Literal["gpu", "interpreter"]
Clock = Literal["gpu", "interpreter"]


class Value(BaseModel):
    """A frozen value; equal by content, safe to share, the same in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class CaseStatus(StrEnum):
    """How one case ended."""

    PASSED = "passed"
    WRONG_VALUES = "wrong_values"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_TYPE = "wrong_type"
    WRONG_DEVICE = "wrong_device"
    MUTATED_INPUT = "mutated_input"
    ALIASED = "aliased"
    OUT_OF_BOUNDS = "out_of_bounds"
    STALE = "stale"
    NOT_TRITON = "not_triton"
    UNFINISHED_WORK = "unfinished_work"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    INTERRUPTED = "interrupted"
    NOT_RUN = "not_run"

    @property
    def failed(self) -> bool:
        """Whether this case speaks against the version."""
        return self not in (CaseStatus.PASSED, CaseStatus.REJECTED, CaseStatus.NOT_RUN)


class Status(StrEnum):
    """How a whole validation, benchmark or run ended."""

    PASSED = "passed"
    FAILED = "failed"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    NO_GPU = "no_gpu"
    NO_TRITON = "no_triton"
    GPU_LOST = "gpu_lost"
    INTERRUPTED = "interrupted"

    @property
    def failed(self) -> bool:
        """Whether this speaks against the version; a job that could not be done does not."""
        return self not in (
            Status.PASSED, Status.NO_GPU, Status.NO_TRITON, Status.GPU_LOST, Status.INTERRUPTED
        )  # fmt: skip


# ------------------------------------------------------------------------------------- names


def check_op_name(name: str) -> str:
    """The op's name, if it can be a folder and a module.

    Raises:
        BadName: anything but `[a-z][a-z0-9_]*`, at most 64 characters.
    """
    if not _OP_NAME.fullmatch(name):
        raise BadName(
            f"{name!r} can't be an op: write lower-case letters, digits and _, a letter first "
            "(softmax, my_op), at most 64 characters"
        )
    return name


def parse_version(name: str) -> tuple[int, str | None]:
    """Number and slug of a version name: `v2` -> (2, None), `v2_online` -> (2, 'online').

    Raises:
        BadName: not of that form.
    """
    match = _VERSION_NAME.fullmatch(name)
    if not match:
        raise BadName(f"{name!r} is not a version: write v1, v2_tiling or v5_any_name")
    return int(match[1]), match[2]


def version_name(number: int, slug: str | None = None) -> str:
    """The whole name of a version: `v2_tiling`, `v5`."""
    slug = slug or SLUGS.get(number)
    return f"v{number}_{slug}" if slug else f"v{number}"


def short(version: str) -> str:
    """`v2_tiling` -> `v2`; other providers as they are."""
    match = _VERSION_NAME.fullmatch(version)
    return f"v{match[1]}" if match else version


def shape_text(shape: Sequence[int]) -> str:
    """`257x1023`; a scalar's shape is `()`."""
    return "x".join(str(n) for n in shape) or "()"


# ------------------------------------------------------------------------------- environment


class Environment(Value):
    """Where a result was made; without it a number means nothing."""

    device_kind: DeviceKind
    device: str
    capability: str | None = None
    gpu_uuid: str | None = None
    driver: str | None = None
    cuda: str | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    sm_clock_mhz: int | None = None
    python: str
    torch: str
    triton: str
    numpy: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """One line: device, driver, torch, triton."""
        driver = f", driver {self.driver}" if self.driver else ""
        return f"{self.device}{driver}, torch {self.torch}, triton {self.triton}"


# ----------------------------------------------------------------------------------- sources


class KernelSource(Value):
    """One attempt at a version: the cell's code, byte for byte."""

    op: str
    version: str
    attempt: int = Field(ge=1)
    source: str
    sha256: str
    entry: str
    signature: str = ""
    path: str
    header_lines: int = 0
    cell_offset: int = 0

    @property
    def number(self) -> int:
        """2 of `v2_tiling`."""
        return parse_version(self.version)[0]

    def cell_line(self, line: int) -> int:
        """The line in the notebook's cell (its magic is line 1) of a line of the source."""
        return line + self.cell_offset

    def file_line(self, line: int) -> int:
        """The line in the version's file of a line of the source."""
        return line + self.header_lines


class KernelError(Value):
    """What went wrong in a version's own code, and where.

    `line` and `column` are 1-based in the version's source; `cell_line` and `file_line` say the same
    place as an editor shows it.
    """

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    cell_line: int | None = None
    file: str | None = None
    file_line: int | None = None
    code: str | None = None
    hint: str | None = None
    traceback: str = ""


class KernelResources(Value):
    """Static figures of one compiled kernel; occupancy as a share of the SM's warps."""

    name: str
    size: str | None = None
    grid: tuple[int, ...] | None = None
    num_warps: int
    num_stages: int | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None
    occupancy_pct: float | None = None
    limiter: str | None = None


class Compilation(Value):
    """A version compiled for a GPU, which need not be there."""

    kind: Literal["compilation"] = "compilation"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    target: str
    duration_s: float | None = None
    kernels: tuple[KernelResources, ...] = ()
    error: KernelError | None = None
    note: str | None = None


class Written(Value):
    """What `write` did: the saved attempt, how it compiled, what comes next."""

    kind: Literal["written"] = "written"
    source: KernelSource
    unchanged: bool = False
    compilation: Compilation | None = None
    next_version: str | None = None
    next_technique: str | None = None
    block_hint: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Failed only where the compiler refused the code."""
        return self.compilation.status if self.compilation else Status.PASSED


# -------------------------------------------------------------------------------- validation


class Case(Value):
    """One concrete input: what `make_inputs` is given and what the harness does to what it gives."""

    shape: tuple[int, ...]
    dtype: str
    size: str | None = None
    regime: str = "normal"
    layout: str = "contiguous"
    seed: int

    @property
    def label(self) -> str:
        """`small 256x256 float32`, `257x1023 float16, x10, transposed`."""
        head = f"{self.size} " if self.size else ""
        tail = [t for t in (self.regime, self.layout) if t not in ("normal", "contiguous")]
        return ", ".join([f"{head}{shape_text(self.shape)} {self.dtype}", *tail])


class Tolerance(Value):
    """An element is right if |got - expected| <= atol + rtol * |expected|.

    `atol` is what it came to on this case, in the output's own unit; `origin` says from what.
    """

    rtol: float
    atol: float
    origin: str
    loosened: bool = False


class Mismatch(Value):
    """Where an output is wrong and what that looks like.

    `picture` is the share of wrong elements per cell of a coarse grid over the output seen as a
    matrix (rows x columns, at most 16 x 48).
    """

    output: int = 0
    index: tuple[int, ...]
    got: float
    expected: float
    allowed: float
    n_wrong: int
    n_elements: int
    where: str
    cause: str | None = None
    advice: str | None = None
    picture: tuple[tuple[float, ...], ...] = ()


class CaseResult(Value):
    """How one case ended. `error_share` is the worst error as a share of what is allowed."""

    case: Case
    status: CaseStatus
    error_share: float | None = None
    max_abs_error: float | None = None
    tolerance: Tolerance | None = None
    calibrated: bool | None = None
    seeds_rule: bool | None = None
    deterministic: bool | None = None
    reason: str | None = None
    mismatch: Mismatch | None = None
    error: KernelError | None = None
    duration_s: float | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.status is CaseStatus.PASSED and self.error_share is None:
            raise ValueError(f"{self.case.label}: a passed case has a measured error")
        if self.status is CaseStatus.NOT_RUN and not self.reason:
            raise ValueError(f"{self.case.label}: a case that was not run says why")
        return self


class Validation(Value):
    """Whether a version is right: every planned case and how it ended."""

    kind: Literal["validation"] = "validation"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    plan: str
    seed: int
    dtypes: tuple[str, ...]
    cases: tuple[CaseResult, ...] = ()
    environment: Environment | None = None
    triton_kernels: tuple[str, ...] = ()
    triton_share: float | None = None
    compilation: Compilation | None = None
    error: KernelError | None = None
    message: str | None = None
    badges: tuple[str, ...] = ()
    attempts_failed: int = 0
    output: str = ""
    duration_s: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the version is right."""
        return self.status is Status.PASSED

    @property
    def run_cases(self) -> tuple[CaseResult, ...]:
        """The cases that were run."""
        return tuple(c for c in self.cases if c.status is not CaseStatus.NOT_RUN)

    @property
    def failed_cases(self) -> tuple[CaseResult, ...]:
        """The cases that speak against the version."""
        return tuple(c for c in self.cases if c.status.failed)

    @property
    def not_run(self) -> tuple[CaseResult, ...]:
        """The cases that were planned and not run; each says why."""
        return tuple(c for c in self.cases if c.status is CaseStatus.NOT_RUN)

    @property
    def rejected_cases(self) -> tuple[CaseResult, ...]:
        """The cases that the version refuses with a clear error: stated limits."""
        return tuple(c for c in self.cases if c.status is CaseStatus.REJECTED)

    @property
    def worst_error_share(self) -> float | None:
        """The largest error of a passed case as a share of what is allowed."""
        shares = [c.error_share for c in self.cases if c.error_share is not None]
        return max(shares, default=None)

    @property
    def device_kind(self) -> DeviceKind | None:
        """`gpu` or `interpreter`."""
        return self.environment.device_kind if self.environment else None


class Validations(Value):
    """Several versions validated one after the other."""

    kind: Literal["validations"] = "validations"
    validations: tuple[Validation, ...]

    @property
    def status(self) -> Status:
        """The first status that is not `passed`."""
        return next((v.status for v in self.validations if not v.passed), Status.PASSED)

    @property
    def passed(self) -> bool:
        """Whether all are right."""
        return self.status is Status.PASSED


# --------------------------------------------------------------------------------- benchmark


class Discard(Value):
    """Runs that did not count, and why."""

    reason: str
    count: int


class Timing(Value):
    """One provider at one size.

    `samples_us` are the official runs, microseconds, shape (runs,): on a GPU net of the timer's own
    cost. `raw_us` are the same runs as the events said. `extra_us` are further rounds, which
    feed only verdicts.
    """

    provider: str
    size: str
    shape: tuple[int, ...]
    clock: Clock
    samples_us: Annotated[tuple[float, ...], Field(min_length=1)]
    raw_us: tuple[float, ...] = ()
    extra_us: tuple[float, ...] = ()
    discards: tuple[Discard, ...] = ()
    bytes: int | None = None
    flops: int | None = None

    @property
    def mean_us(self) -> float:
        """The spec's figure for a size."""
        return statistics.fmean(self.samples_us)

    @property
    def median_us(self) -> float:
        """Middle of the official runs."""
        return statistics.median(self.samples_us)

    @property
    def std_us(self) -> float | None:
        """Sample standard deviation; None for a single run."""
        return statistics.stdev(self.samples_us) if len(self.samples_us) > 1 else None

    @property
    def min_us(self) -> float:
        """Fastest official run."""
        return min(self.samples_us)

    @property
    def max_us(self) -> float:
        """Slowest official run."""
        return max(self.samples_us)

    def percentile_us(self, percent: float) -> float:
        """The given percentile of the official runs, linear between neighbours."""
        return stats.percentile(self.samples_us, percent)

    @property
    def gbps(self) -> float | None:
        """Compulsory traffic per second, 1e9 bytes."""
        return roofline.gbps(self.bytes, self.mean_us)

    @property
    def tflops(self) -> float | None:
        """Algorithmic operations per second, 1e12."""
        return roofline.tflops(self.flops, self.mean_us)


class Comparison(Value):
    """How much faster `candidate` is than `baseline`, from paired rounds; > 1 is faster."""

    candidate: str
    baseline: str
    size: str
    ratio: float
    low: float
    high: float
    threshold: float
    rounds: int
    verdict: Literal["faster", "slower", "same", "undecided"]


class NotTimed(Value):
    """A provider and size without a time, and why. `provider` None: all of them."""

    size: str
    provider: str | None = None
    reason: str
    estimate_s: float | None = None


class Benchmark(Value):
    """How fast: every provider at every size, in one session, in random order."""

    kind: Literal["benchmark"] = "benchmark"
    op: str
    status: Status
    versions: tuple[str, ...]
    sha256s: tuple[str, ...]
    providers: tuple[str, ...]
    sizes: tuple[str, ...]
    runs: int
    dtype: str
    clock: Clock | None = None
    cold: bool = True
    timings: tuple[Timing, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    controls: tuple[Comparison, ...] = ()
    not_timed: tuple[NotTimed, ...] = ()
    floor_us: float | None = None
    empty_kernel_us: float | None = None
    tick_us: float | None = None
    copy_gbps: float | None = None
    environment: Environment | None = None
    seed: int
    badges: tuple[str, ...] = ()
    error: KernelError | None = None
    message: str | None = None
    output: str = ""
    duration_s: float | None = None

    def provider(self, name: str) -> str:
        """The whole provider name of `v2`, `v2_tiling` or `torch`.

        Raises:
            UnknownVersion: no such provider was timed here.
        """
        for known in self.providers:
            if name in (known, short(known)):
                return known
        raise UnknownVersion(f"{name!r} is not in this benchmark: {', '.join(self.providers)}")

    def timing(self, provider: str, size: str) -> Timing | None:
        """The timing, or None where there is none."""
        name = self.provider(provider)
        hits = (t for t in self.timings if t.provider == name and t.size == size)
        return next(hits, None)

    def final_us(self, provider: str) -> float | None:
        """The spec's final: the mean of the three means; None unless all three sizes were timed."""
        means = [t.mean_us for size in SIZES if (t := self.timing(provider, size))]
        return statistics.fmean(means) if len(means) == len(SIZES) else None

    def speedup(self, version: str, baseline: str = "torch") -> float | None:
        """Ratio of finals, > 1 is faster; None without both, or in the interpreter."""
        if self.clock != "gpu" or baseline not in self.providers:
            return None
        reference, own = self.final_us(baseline), self.final_us(version)
        return reference / own if reference and own else None

    def size_speedup(self, version: str, size: str, baseline: str = "torch") -> float | None:
        """Ratio of one size's means, > 1 is faster; None without both, or in the interpreter."""
        if self.clock != "gpu" or baseline not in self.providers:
            return None
        reference, own = self.timing(baseline, size), self.timing(version, size)
        return reference.mean_us / own.mean_us if reference and own else None

    def geomean_speedup(self, version: str, baseline: str = "torch") -> float | None:
        """Geometric mean of the three sizes' speedups; None unless all three were timed."""
        ratios = [self.size_speedup(version, size, baseline) for size in SIZES]
        known = [r for r in ratios if r is not None]
        return statistics.geometric_mean(known) if len(known) == len(SIZES) else None

    def comparison(self, candidate: str, size: str, baseline: str = "torch") -> Comparison | None:
        """The verdict between two providers at a size."""
        pair = (self.provider(candidate), self.provider(baseline), size)
        hits = (c for c in self.comparisons if (c.candidate, c.baseline, c.size) == pair)
        return next(hits, None)

    @property
    def passed(self) -> bool:
        """Whether the benchmark stands."""
        return self.status is Status.PASSED

    @property
    def fastest(self) -> str | None:
        """The version with the smallest final; None where nothing was ranked."""
        if self.clock != "gpu":
            return None
        finals = {v: f for v in self.versions if (f := self.final_us(v)) is not None}
        return min(finals, key=finals.__getitem__, default=None)


# -------------------------------------------------------------------------------------- runs


class TensorSummary(Value):
    """An output at a glance; min, max and mean are None for an empty tensor."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    n_nan: int = 0


class RunResult(Value):
    """One call of a version, then a second: what it gave, how long the host waited, what it printed."""

    kind: Literal["run"] = "run"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    inputs: str
    outputs: tuple[TensorSummary, ...] = ()
    first_call_ms: float | None = None
    second_call_ms: float | None = None
    environment: Environment | None = None
    error: KernelError | None = None
    message: str | None = None
    output: str = ""


# ------------------------------------------------------------------------ knowledge and state


class Technique(Value):
    """An optimisation technique: what it is, when it helps, which ops it fits."""

    name: str
    title: str
    description: str
    helps_when: str
    ops: tuple[str, ...] = ()


class OpFacts(Value):
    """What there is to know about an op before writing a kernel for it."""

    name: str
    aliases: tuple[str, ...] = ()
    torch_equivalent: str
    signature: str
    formula: str
    description: str
    input_shapes: str
    output_shape: str
    complexity: str
    memory_pattern: str
    bound: Literal["memory", "compute", "mixed"] = "memory"
    accumulate: str = "float32"
    tips: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    pattern: str = "elementwise"
    sizes: dict[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    own: bool = False


class VersionState(Value):
    """A version as it stands: its newest attempt, verdict and time.

    `current`: of the op's versions the one written last. `counted`: written since the last reset,
    so that it counts towards the versions that must be written.
    """

    version: str
    attempt: int
    attempts_failed: int = 0
    exhausted: bool = False
    entry: str
    path: str
    sha256: str
    validation: Status | None = None
    validation_device: DeviceKind | None = None
    validation_plan: str | None = None
    cases: str | None = None
    final_us: float | None = None
    means_us: dict[str, float] = {}
    clock: Clock | None = None
    speedup: float | None = None
    badges: tuple[str, ...] = ()
    best: bool = False
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


class EngineState(Value):
    """What is there to run kernels with, and what it is doing."""

    device_kind: DeviceKind | None
    device: str
    standby_ready: bool = False
    busy: str | None = None
    missing: str | None = None


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


class Reference(Value):
    """A piece of the knowledge base, or what a search found in it."""

    kind: Literal["reference"] = "reference"
    query: str
    title: str
    markdown: str
    more: tuple[str, ...] = ()


class Template(Value):
    """A starting point for a cell; `cell` is what to put into the notebook."""

    kind: Literal["template"] = "template"
    pattern: str
    op: str
    version: str
    source: str

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
    note: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file that was written."""
        files: Iterable[str | None] = (self.markdown, self.notebook, self.html, self.jsonl)
        return tuple(f"{self.workspace}/{p}" for p in files if p)


Result = Annotated[
    Validation | Benchmark | RunResult | Compilation | Best, Field(discriminator="kind")
]
Verb = Literal[
    "shown", "defined", "written", "compiled", "ran", "validated", "benchmarked", "chosen",
    "forced", "reset", "exported",
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
    args: dict[str, Any] = {}
    source: KernelSource | None = None
    reference: str | None = None
    facts: OpFacts | None = None
    result: Result | None = None
