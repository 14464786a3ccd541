"""Jobs: self-contained values that an executor runs on any machine."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.model import (
    Case,
    DeviceKind,
    PlanName,
    Setting,
    ValidationRequest,
    Value,
)

Mode = Literal["gpu", "interpreter", "compiler", "tools"]
"""Kind of worker: how it runs kernels, or `tools`: on a GPU, it starts tools that run them."""
TimerName = Literal["gated", "graph", "launch"]


class JobRequest(Value):
    """Base of all jobs."""

    kind: str
    is_timing: ClassVar[bool] = False  # needs its device exclusively

    @property
    def starts_tools(self) -> bool:
        """True if a tool of NVIDIA runs the version, which can't work in a sandbox."""
        return False

    def needs_new_worker(self, mode: Mode) -> bool:
        """Return whether a worker that has run the same code can't serve it in such a mode."""
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
    """Check whether a version is correct.

    Attributes:
        only: run the cases of the plan whose label has these words; empty for all.
        part, parts: run this part of the cases, of so many; the other workers run the others.
    """

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
    only: str = ""
    part: int = 0
    parts: int = 1

    @property
    def can_be_split(self) -> bool:
        """True for a plan of many cases, which several workers can share.

        A quick plan has few, and a benchmark follows it, which waits for the end of the helpers.
        """
        return self.has_whole_plan and self.parts == 1 and not self.sanitize and not self.only

    @property
    def has_whole_plan(self) -> bool:
        """True for all cases of a full or thorough plan, for a part, or for some of them."""
        return self.plan != "quick" and not self.shapes and not self.op.inputs

    def split(self, n: int) -> tuple[ValidateJob, ...]:
        """Return jobs that run a part of the cases each."""
        return tuple(self.evolve(part=i, parts=n) for i in range(n))

    @property
    def starts_tools(self) -> bool:
        """True with compute-sanitizer."""
        return self.sanitize

    def needs_new_worker(self, mode: Mode) -> bool:
        """Return True on a GPU unless quick: many forms are compiled, in processes of one job."""
        return mode == "gpu" and self.plan != "quick"

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
            only=self.only,
        )


class BenchJob(JobRequest):
    """Time versions and torch.

    Attributes:
        sizes: names, or shapes as text (`257x1023`).
        op_sizes: the names of the sizes over which a final is the mean; none: all of the op.
        against: providers to time beside the versions.
        baselines: providers and versions; each version is compared with all of them.
        backward_only: of the op of another's gradients, time the backward pass without the forward
            pass before it.
    """

    is_timing: ClassVar[bool] = True
    kind: Literal["bench"] = "bench"
    op: OpRef
    versions: tuple[VersionRef, ...]
    sizes: tuple[str, ...]
    op_sizes: tuple[str, ...] = ()
    runs: int
    dtype: str
    against: tuple[str, ...] = ()
    baselines: tuple[str, ...] = ()
    cold: bool = True
    timer: TimerName = "gated"
    census: bool = False
    backward_only: bool = False
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


SECTION_SETS = ("basic", "detailed", "full")  # of Nsight Compute
How = Literal["auto", "counters", "activity"]


class ProfileJob(VersionJob):
    """Read the hardware counters of one call under Nsight Compute, or record what it runs.

    Attributes:
        ncu: path of the program; empty: search for it.
        sections: a set of sections, or names with commas; they fill Nsight Compute's own window.
        how: by counters, by CUPTI's activity records, or by these where counters are refused.
    """

    is_timing: ClassVar[bool] = True
    kind: Literal["profile"] = "profile"
    case: Case
    ncu: str = ""
    sections: str = "basic"
    how: How = "auto"
    compile_s: float = 120.0

    @property
    def starts_tools(self) -> bool:
        """Return True."""
        return True

    def mode(self, device_kind: DeviceKind) -> Mode:
        """Return `tools` on a GPU: the worker itself calls no version."""
        return "tools" if device_kind == "gpu" else device_kind


class FormsJob(JobRequest):
    """List the inputs and outputs of an op at each of its sizes, without computing them."""

    kind: Literal["forms"] = "forms"
    op: OpRef


class DescribeJob(JobRequest):
    """Load an op, call its reference once and return its description.

    Attributes:
        patience_s: how long it may be silent; 0: as any job.
    """

    kind: Literal["describe"] = "describe"
    op: OpRef
    patience_s: float = 0.0


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


__all__ = [
    "BenchJob",
    "CompileJob",
    "DescribeJob",
    "DeviceKind",
    "FormsJob",
    "Job",
    "JobRequest",
    "Mode",
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
]
