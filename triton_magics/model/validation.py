"""Whether a version is right: cases, tolerances, mismatches, the verdict."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from triton_magics.model.base import CaseStatus, DeviceKind, Status, Value, shape_text
from triton_magics.model.environment import Environment
from triton_magics.model.source import Compilation, KernelError


class Case(Value):
    """One concrete input: what `make_inputs` is given, and what is done to what it gives."""

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
    """Whether a version is right: every planned case and how it ended.

    `options`: what was asked beside plan and seed, as one types it: `--dtype float32`.
    """

    kind: Literal["validation"] = "validation"
    op: str
    version: str
    attempt: int
    sha256: str
    status: Status
    plan: str
    seed: int
    options: tuple[str, ...] = ()
    dtypes: tuple[str, ...]
    cases: tuple[CaseResult, ...] = ()
    environment: Environment | None = None
    triton_kernels: tuple[str, ...] = ()
    triton_share: float | None = None
    torch_ops: tuple[str, ...] = ()
    sanitized: tuple[Sanitized, ...] = ()
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
    def spot_check(self) -> bool:
        """Whether only shapes that were named were looked at: it can fail a version, not more."""
        return any(option.startswith("--shape") for option in self.options)

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


class Replay(Value):
    """One case run again in the interpreter: the first access outside a tensor, if there was one.

    `note` says why there is no answer, where there is none.
    """

    kind: Literal["replay"] = "replay"
    case: Case
    error: KernelError | None = None
    note: str | None = None


class Sanitized(Value):
    """What one tool of compute-sanitizer said of a case; `note` where it could not be run."""

    tool: str
    case: Case
    findings: tuple[str, ...] = ()
    n_errors: int | None = None
    note: str | None = None


class Plan(Value):
    """What a validation will run, before any version is loaded.

    `not_run`: the cases of it that this device does not run; each says why.
    """

    kind: Literal["plan"] = "plan"
    op: str
    plan: str
    seed: int
    dtypes: tuple[str, ...]
    cases: tuple[Case, ...]
    not_run: tuple[CaseResult, ...] = ()
    device: str = ""

    @property
    def run_cases(self) -> tuple[Case, ...]:
        """The cases that this device runs."""
        left_out = {c.case for c in self.not_run}
        return tuple(c for c in self.cases if c not in left_out)


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
