"""Jobs: self-contained values that an executor runs on any machine, and their answers."""

from __future__ import annotations

import hashlib
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from triton_magics.model import (
    SIZES,
    BackwardFacts,
    Benchmark,
    Case,
    Compilation,
    DeviceKind,
    KernelError,
    Plan,
    PlanName,
    Profile,
    Replay,
    RunResult,
    SelfTest,
    Setting,
    Sweep,
    Validation,
    ValidationRequest,
    Value,
)

Mode = Literal["gpu", "interpreter", "compiler"]
TimerName = Literal["gated", "graph", "launch"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class InputFile(Value):
    """A file with inputs of an op.

    Attributes:
        name: as the user wrote it; its end tells the format.
        data: the content, compressed by zlib, in base64.
    """

    name: str
    data: str


class OpRef(Value):
    """An op to load: a built-in by name, or the user's own by source.

    Attributes:
        source: the text of the user's `reference.py`; None for a built-in.
        sha256: hash of `source`.
        gradient_of: the op whose gradients it computes; the source is then that op's.
        inputs: in place of those that the op draws; it then has one size, `file`.
    """

    name: str
    source: str | None = None
    sha256: str | None = None
    gradient_of: str | None = None
    inputs: InputFile | None = None

    @model_validator(mode="after")
    def _check_hash(self) -> Self:
        if self.sha256 != (None if self.source is None else _digest(self.source)):
            raise ValueError(f"the source of {self.name} does not match its sha256")
        return self

    @classmethod
    def own(cls, name: str, source: str, *, gradient_of: str | None = None) -> Self:
        """Return a reference to an op of the user's own."""
        return cls(name=name, source=source, sha256=_digest(source), gradient_of=gradient_of)

    @property
    def shown_path(self) -> str:
        """Path of the file as shown to the user."""
        return f"{self.gradient_of or self.name}/reference.py"


class VersionRef(Value):
    """A version to load, self-contained so that another machine can run it.

    Attributes:
        source: the whole module, header included, so that line numbers match the user's file.
        sha256: hash of the body, which is the module without its header.
        entry: the function to call.
        header_lines: lines of `source` above the body.
        cell_offset: lines of the notebook's cell above the body.
        shown_path: the user's file, relative to the workspace; for messages only.
        language: name of the kernel language.
        op: decides how a raw kernel, a class or keyword-only parameters are called; None: they are
            called like any function.
    """

    version: str
    attempt: int
    source: str
    sha256: str
    entry: str
    header_lines: int
    cell_offset: int
    shown_path: str
    language: str = "triton"
    op: OpRef | None = None

    @model_validator(mode="after")
    def _check_hash(self) -> Self:
        if self.sha256 != _digest(self.body):
            raise ValueError(f"the source of {self.version} does not match its sha256")
        return self

    @property
    def body(self) -> str:
        """The module without its header: the cell's code."""
        return "".join(self.source.splitlines(keepends=True)[self.header_lines :])


class JobRequest(Value):
    """Base of all jobs."""

    kind: str
    is_timing: ClassVar[bool] = False  # needs its device exclusively

    @property
    def starts_tools(self) -> bool:
        """True if a tool of NVIDIA runs the version, which can't work in a sandbox."""
        return False

    @property
    def refs(self) -> tuple[VersionRef, ...]:
        """Versions to load."""
        return ()

    @property
    def subject(self) -> str:
        """Name of the op; empty without one."""
        op: OpRef | None = getattr(self, "op", None)
        return op.name if op else ""

    @property
    def label(self) -> str:
        """Name for users: `validate softmax v2_tiling`."""
        return " ".join(filter(None, (self.kind, self.subject, *(r.version for r in self.refs))))

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return the kind of worker for this job on such a device."""
        return device_kind


class VersionJob(JobRequest):
    """Base of the jobs of one version."""

    op: OpRef
    version: VersionRef

    @property
    def refs(self) -> tuple[VersionRef, ...]:
        """Versions to load."""
        return (self.version,)


class ValidateJob(VersionJob):
    """Check whether a version is correct."""

    kind: Literal["validate"] = "validate"
    dtypes: tuple[str, ...] | None = None
    plan: PlanName = "full"
    shapes: tuple[tuple[int, ...], ...] = ()
    own_shapes: tuple[tuple[int, ...], ...] = ()
    seed: int
    rtol: float | None = None
    atol: float | None = None
    sanitize: bool = False
    budget_s: float | None = None
    compile_s: float = 120.0

    @property
    def starts_tools(self) -> bool:
        """True with compute-sanitizer."""
        return self.sanitize

    @property
    def request(self) -> ValidationRequest:
        """The parameters to record."""
        return ValidationRequest(
            plan=self.plan,
            seed=self.seed,
            dtypes=self.dtypes,
            rtol=self.rtol,
            atol=self.atol,
            shapes=self.shapes,
            inputs=self.op.inputs.name if self.op.inputs else "",
        )


class BenchJob(JobRequest):
    """Time versions and torch.

    Attributes:
        sizes: names, or shapes as text (`257x1023`).
        op_sizes: the names of the op's sizes, over which a final is the mean.
        against: providers to time beside the versions.
        baselines: providers and versions; each version is compared with all of them.
    """

    is_timing: ClassVar[bool] = True
    kind: Literal["bench"] = "bench"
    op: OpRef
    versions: tuple[VersionRef, ...]
    sizes: tuple[str, ...]
    op_sizes: tuple[str, ...] = SIZES
    runs: int
    dtype: str
    against: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    cold: bool = True
    timer: TimerName = "gated"
    census: bool = False
    seed: int
    budget_s: float
    compile_s: float = 120.0

    @property
    def refs(self) -> tuple[VersionRef, ...]:
        """Versions to load."""
        return self.versions


class SelfTestJob(JobRequest):
    """Check on this GPU that the timing distinguishes known cases."""

    kind: Literal["selftest"] = "selftest"
    seed: int = 0
    budget_s: float = 30.0
    compile_s: float = 120.0


class RunJob(VersionJob):
    """Call a version twice and compare the results.

    Attributes:
        size: a name; None, without a shape and inputs: the op's smallest.
    """

    kind: Literal["run"] = "run"
    size: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str = "float32"
    seed: int = 0
    inputs: str | None = None
    compile_s: float = 120.0


class CompileJob(VersionJob):
    """Compile a version, for a GPU that need not be present.

    Attributes:
        target: compute capability, 90 for sm_90.
        sm_count: number of its SMs; None: that of all GPUs of the target, where they agree.
        sizes: names; None: the smallest and the largest of the op.
        here: also run it on this GPU and return the driver's figures of the kernels.
        detail: also count their instructions.
        listings: code to return as text.
        ahead: also compile what such a validation will launch, if that takes no longer.
        own_shapes: shapes of the user's own, for `ahead`.
    """

    kind: Literal["compile"] = "compile"
    target: int = 90
    sm_count: int | None = None
    sizes: tuple[str, ...] | None = None
    dtype: str = "float32"
    here: bool = False
    detail: bool = False
    listings: tuple[Literal["ptx", "sass"], ...] = ()
    ahead: Literal["quick", "full"] | None = None
    own_shapes: tuple[tuple[int, ...], ...] = ()
    compile_s: float = 120.0

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return the kind of worker for this job on such a device."""
        return device_kind if self.here else "compiler"


class SweepPoint(Value):
    """A configuration to check: its settings, and the whole source with them."""

    settings: dict[str, Setting]
    source: str
    sha256: str


class SweepJob(VersionJob):
    """Check and time configurations of a version.

    Attributes:
        size: a name, or a shape as text.
        target: without a GPU: only compile, for this compute capability (90 for sm_90).
    """

    is_timing: ClassVar[bool] = True
    kind: Literal["sweep"] = "sweep"
    points: tuple[SweepPoint, ...]
    size: str
    dtype: str
    runs: int = 10
    cold: bool = True
    seed: int
    target: int | None = None
    compile_s: float = 120.0

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return the kind of worker for this job on such a device."""
        return device_kind if self.target is None else "compiler"


class PlanJob(JobRequest):
    """List the cases that a validation would run on a kind of device."""

    kind: Literal["plan"] = "plan"
    op: OpRef
    dtypes: tuple[str, ...] | None = None
    plan: PlanName = "full"
    shapes: tuple[tuple[int, ...], ...] = ()
    own_shapes: tuple[tuple[int, ...], ...] = ()
    seed: int
    device_kind: DeviceKind
    language: str = "triton"

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return the kind of worker for this job on such a device."""
        return "compiler"


class ReplayJob(VersionJob):
    """Run one case in the interpreter to find the line that accesses memory out of bounds."""

    kind: Literal["replay"] = "replay"
    case: Case

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return the kind of worker for this job on such a device."""
        return "interpreter"


class ProfileJob(VersionJob):
    """Read the hardware counters of one call under Nsight Compute.

    Attributes:
        ncu: path of the program; empty: search for it.
    """

    is_timing: ClassVar[bool] = True
    kind: Literal["profile"] = "profile"
    case: Case
    ncu: str = ""
    compile_s: float = 120.0

    @property
    def starts_tools(self) -> bool:
        """Return True."""
        return True


class TensorForm(Value):
    """Shape and dtype of an argument or an output; a scalar has a value and no shape."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None = None
    value: bool | int | float | None = None


class SizeForms(Value):
    """Inputs and outputs of an op at one of its sizes."""

    size: str
    shape: tuple[int, ...]
    inputs: tuple[TensorForm, ...]
    outputs: tuple[TensorForm, ...]


class FormsJob(JobRequest):
    """List the inputs and outputs of an op at each of its sizes, without computing them."""

    kind: Literal["forms"] = "forms"
    op: OpRef


class OpForms(Value):
    """Inputs and outputs of an op at its sizes, the smallest first."""

    kind: Literal["forms"] = "forms"
    sizes: tuple[SizeForms, ...]


class DescribeJob(JobRequest):
    """Load an op, call its reference once and return its description.

    Attributes:
        patience_s: how long it may be silent; 0: as any job.
    """

    kind: Literal["describe"] = "describe"
    op: OpRef
    patience_s: float = 0.0


class OpDescription(Value):
    """The declarations of an op's file, once its reference has run on a small input."""

    kind: Literal["description"] = "description"
    name: str
    sizes: dict[str, tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    signature: str
    doc: str
    outputs: tuple[str, ...]
    flops: int | None = None
    backward: BackwardFacts | None = None


class ProbeJob(JobRequest):
    """Find a draft of an imported problem that works, and the inputs that it accepts.

    Attributes:
        op: the problem.
        drafts: its texts as an op, the most useful first.
        max_bytes: of the inputs and outputs of a size; a larger one gets a smaller batch.
        batch: position of the batch in a shape, for each draft; None: nothing can be made smaller.
    """

    kind: Literal["probe"] = "probe"
    op: OpRef
    drafts: tuple[OpRef, ...]
    batch: tuple[int | None, ...]
    max_bytes: int


class Findings(Value):
    """Facts about a problem that a worker found by calling its reference.

    Attributes:
        draft: position of the first draft that works.
        sizes: shapes to time, by name; those of the problem, or with a smaller batch.
        shapes: shapes to check, cheap ones first.
        skip_values: kinds of input values at which the reference is not finite, or takes long.
        input_names: of the reference.
        mutates: positions of the inputs that the reference changes.
        dtype: the least precise floating dtype of its inputs and outputs; None: of the draft.
        has_oracle: the reference works in float64.
        notes: restrictions, for the op's text.
    """

    kind: Literal["findings"] = "findings"
    draft: int = 0
    sizes: dict[str, tuple[int, ...]]
    shapes: tuple[tuple[int, ...], ...]
    skip_values: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    mutates: tuple[int, ...] = ()
    dtype: str | None = None
    has_oracle: bool = True
    notes: tuple[str, ...] = ()


class WorkerFault(Value):
    """A job that failed for a reason other than a call of the version.

    Attributes:
        user: the user can repair it (an own op whose reference raises, an unknown size).
        message: the reason.
        traceback: where it happened.
        version_error: it happened in the process in which the version ran, and the version may be
            the cause: a signal handler that raises, a changed module. It is the job's verdict.
    """

    kind: Literal["fault"] = "fault"
    user: bool
    message: str
    traceback: str = ""
    version_error: KernelError | None = None


Job = Annotated[
    ValidateJob
    | ReplayJob
    | PlanJob
    | BenchJob
    | SelfTestJob
    | SweepJob
    | RunJob
    | ProfileJob
    | CompileJob
    | DescribeJob
    | FormsJob
    | ProbeJob,
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
    | Profile
    | Compilation
    | OpDescription
    | Findings
    | OpForms
    | WorkerFault,
    Field(discriminator="kind"),
]


__all__ = [
    "Answer",
    "BenchJob",
    "CompileJob",
    "DescribeJob",
    "DeviceKind",
    "Findings",
    "FormsJob",
    "Job",
    "JobRequest",
    "Mode",
    "OpDescription",
    "OpForms",
    "OpRef",
    "PlanJob",
    "ProbeJob",
    "ProfileJob",
    "ReplayJob",
    "RunJob",
    "SelfTestJob",
    "SweepJob",
    "SweepPoint",
    "TimerName",
    "ValidateJob",
    "VersionJob",
    "VersionRef",
    "WorkerFault",
]
