"""Results of a validation: cases, tolerances, mismatches, the verdict."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import computed_field, model_validator

from triton_magics.model import older_records
from triton_magics.model.badge import Badge, BadgeCode
from triton_magics.model.base import CaseStatus, DeviceKind, Status, Value
from triton_magics.model.case import Case
from triton_magics.model.cause import Cause
from triton_magics.model.coverage import Coverage, LeftOut, PlanName, PlanScope
from triton_magics.model.gap import Gap, validation_gap
from triton_magics.model.result import CodeLine, KernelError, VersionResult
from triton_magics.model.source import Compilation
from triton_magics.model.tabular import Tabular

MAX_TORCH_SHARE = 0.01  # of an op's work, for joining partial results


class Tolerance(Value):
    """An element is right if |got - expected| <= atol + rtol * |expected|.

    `atol` is its value on this case, in the output's own unit; `origin` names its source.
    """

    rtol: float
    atol: float
    origin: str
    loosened: bool = False


class Mismatch(Value):
    """Place and pattern of the wrong elements of an output.

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
    cause: Cause | None = None
    picture: tuple[tuple[float, ...], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        return older_records.convert_mismatch(value) if isinstance(value, dict) else value


class TorchWork(Value):
    """Torch operation that the output depends on.

    Attributes:
        operation: ATen's name, such as `sum`.
        line: of the cell, that calls it; None where it is not known.
        share: of the op's work, 0 to 1.
    """

    operation: str
    line: int | None = None
    share: float


class ComputedBy(Value):
    """Shares of the work.

    Attributes:
        kernel_share: of the version's own kernels, 0 to 1.
        torch_work: the torch operations that the output depends on.
        measure: of the share: the op's operations, or GPU time in older records.
    """

    kernel_share: float
    torch_work: tuple[TorchWork, ...] = ()
    measure: Literal["work", "gpu_time"] = "work"


class CaseResult(Value):
    """Result of one case.

    Attributes:
        torch_work: torch operations that the output depends on, with their share in this case.
        problem_rule: the rule of the problem that the op was imported from accepts the output; None
            for values that are not the problem's own.
        error_share: the worst error as a share of the allowed error.
        needs_default_dtype: the output is wrong where torch's default dtype is another.
        is_scattered: an output is not contiguous, though torch's own and all inputs are.
        invalid_access: the GPU reported an access to memory that is not mapped.
    """

    case: Case
    status: CaseStatus
    error_share: float | None = None
    max_abs_error: float | None = None
    tolerance: Tolerance | None = None
    calibrated: bool | None = None
    seeds_rule: bool | None = None
    problem_rule: bool | None = None
    deterministic: bool | None = None
    needs_default_dtype: bool = False
    is_scattered: bool = False
    reason: str | None = None
    mismatch: Mismatch | None = None
    error: KernelError | None = None
    invalid_access: bool = False
    torch_work: tuple[TorchWork, ...] = ()
    duration_s: float | None = None

    @model_validator(mode="after")
    def _check_status(self) -> Self:
        if self.status is CaseStatus.PASSED and self.error_share is None:
            raise ValueError(f"{self.case.label}: a passed case has a measured error")
        if self.status is CaseStatus.NOT_RUN and not self.reason:
            raise ValueError(f"{self.case.label}: a case that was not run says why")
        return self

    @property
    def is_conclusive(self) -> bool:
        """True for a passed case that a lower precision, or any difference, would have failed."""
        exact = self.tolerance is not None and self.tolerance.rtol == self.tolerance.atol == 0
        return self.status is CaseStatus.PASSED and (self.calibrated is True or exact)


class ValidationRequest(Value):
    """Parameters of a validation: as many as are needed to do the same again.

    Attributes:
        plan: `full`, `quick` with fewer cases, or `thorough` with more.
        seed: of the inputs.
        dtypes: the only ones to check; None for all that the op declares.
        rtol: in place of the calibrated relative tolerance.
        atol: in place of the calibrated absolute tolerance.
        shapes: the only ones to check; empty for those of the plan.
        inputs: the file with the only inputs to check; empty for those of the plan.
        only: words that the label of each case has; empty for all cases of the plan.
    """

    plan: PlanName = "full"
    seed: int
    dtypes: tuple[str, ...] | None = None
    rtol: float | None = None
    atol: float | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    inputs: str = ""
    only: str = ""


class Validation(Tabular, VersionResult):
    """Verdict on a version: every planned case and how it ended.

    Attributes:
        dtypes: those that were to be checked.
        computed_by: shares of the work; None where no case was judged.
        declared_dtypes: those of the op; None where the process was lost before it reported them.
        declared_layouts: those that the op restricts its tensors to; None for every layout.
        scope: combinations of values that the cases had; None for a quick plan and named shapes.
        unchecked: what the verdict does not cover, in the version's language or on this device.
        unreached: statements of the version's functions that no case of a whole plan has run; those
            of kernels are not seen.
        pattern: what all failed cases have in common, and no passed one has.
    """

    rows_of: ClassVar[str] = "cases"

    kind: Literal["validation"] = "validation"
    request: ValidationRequest
    dtypes: tuple[str, ...]
    declared_dtypes: tuple[str, ...] | None = None
    declared_layouts: tuple[str, ...] | None = None
    scope: PlanScope | None = None
    cases: tuple[CaseResult, ...] = ()
    triton_kernels: tuple[str, ...] = ()
    computed_by: ComputedBy | None = None
    torch_ops: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    unreached: tuple[CodeLine, ...] = ()
    pattern: FailurePattern | None = None
    sanitized: tuple[Sanitized, ...] = ()
    compilation: Compilation | None = None
    attempts_failed: int = 0

    @model_validator(mode="before")
    @classmethod
    def _convert_older(cls, value: Any) -> Any:
        return older_records.convert_validation(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_cases(self) -> Self:
        if self.passed and self.failed_cases:
            raise ValueError(f"{self.op} {self.version}: it passed and has failed cases")
        if self.passed and not any(c.status is CaseStatus.PASSED for c in self.cases):
            raise ValueError(f"{self.op} {self.version}: it passed without a case that passed")
        return self

    @property
    def plan(self) -> PlanName:
        """`full`, `quick` or `thorough`."""
        return self.request.plan

    @property
    def seed(self) -> int:
        """Seed of the inputs."""
        return self.request.seed

    @property
    def coverage(self) -> Coverage:
        """Part of the op that was checked."""
        return Coverage(
            plan=self.request.plan,
            dtypes=self.dtypes,
            declared=self.declared_dtypes,
            shapes=self.request.shapes,
            inputs=self.request.inputs,
            only=self.request.only,
            conclusive=not self.passed or self.is_conclusive,
            scope=self.scope,
            not_run=_by_reason(self.not_run),
        )

    @property
    def is_loosened(self) -> bool:
        """True if the user's tolerance is wider than the calibrated one."""
        return any(c.tolerance.loosened for c in self.cases if c.tolerance)

    @property
    def uncalibrated_dtypes(self) -> tuple[str, ...]:
        """Dtypes in which no case passed that a lower precision would have failed."""
        passed = {c.case.dtype for c in self.cases if c.status is CaseStatus.PASSED}
        conclusive = {c.case.dtype for c in self.cases if c.is_conclusive}
        return tuple(d for d in self.dtypes if d in passed - conclusive)

    @property
    def is_conclusive(self) -> bool:
        """True if it passed with the calibrated tolerance, with evidence in each dtype.

        Only such a verdict can end an op or make a version the best one.
        """
        return self.passed and not self.is_loosened and not self.uncalibrated_dtypes

    @computed_field  # type: ignore[prop-decorator]
    @property
    def badges(self) -> tuple[Badge, ...]:
        """Reservations about the verdict."""
        request = self.request
        own = {"rtol": request.rtol, "atol": request.atol}
        tolerances = {name: value for name, value in own.items() if value is not None}
        uncalibrated = self.uncalibrated_dtypes if self.passed else ()
        badges = (
            tolerances and Badge(code=BadgeCode.OWN_TOLERANCE, params=tolerances),
            request.plan == "quick" and Badge(code=BadgeCode.QUICK_PLAN),
            request.shapes and Badge(code=BadgeCode.NAMED_SHAPES),
            request.only and Badge(code=BadgeCode.NAMED_CASES),
            request.inputs and Badge.of(BadgeCode.OWN_INPUTS, file=request.inputs),
            self.coverage.missing_dtypes
            and Badge(code=BadgeCode.SOME_DTYPES, params={"dtypes": self.dtypes}),
            self.declared_layouts
            and Badge.of(BadgeCode.SOME_LAYOUTS, layouts=self.declared_layouts),
            self.is_loosened and Badge(code=BadgeCode.LOOSENED_TOLERANCE),
            uncalibrated and Badge.of(BadgeCode.UNCALIBRATED, dtypes=uncalibrated),
            _problem_badge(self.cases),
            self.stated_limits
            and Badge.of(
                BadgeCode.STATED_LIMITS, extents=tuple(limit.item for limit in self.stated_limits)
            ),
            self.unreached
            and Badge.of(
                BadgeCode.LINES_NOT_RUN, lines=tuple(line.cell_line for line in self.unreached)
            ),
            self.computed_by and self.computed_by.torch_work and _torch_badge(self.computed_by),
            any(c.is_scattered for c in self.cases) and Badge(code=BadgeCode.SCATTERED),
            any(c.needs_default_dtype for c in self.cases) and Badge(code=BadgeCode.DEFAULT_DTYPE),
        )
        return tuple(badge for badge in badges if badge)

    @property
    def gap(self) -> Gap | None:
        """First reason why this is no full pass; None where it is one."""
        return validation_gap(self.version, self.status, self.coverage, self.badges)

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
    def stated_limits(self) -> tuple[LeftOut, ...]:
        """The extreme shapes that the version refuses or can't be launched at, each with a reason.

        Raising an error there is no failure; a wrong output is one.
        """
        refused = {c.case.extent: c.reason or "" for c in reversed(self.rejected_cases)}
        named = reversed(refused.items())
        return tuple(LeftOut(item=item, reason=reason) for item, reason in named if item)

    @property
    def worst_error_share(self) -> float | None:
        """The largest error of a passed case as a share of the allowed error."""
        shares = [c.error_share for c in self.cases if c.error_share is not None]
        return max(shares, default=None)

    @property
    def device_kind(self) -> DeviceKind | None:
        """`gpu` or `interpreter`."""
        return self.environment.device_kind if self.environment else None


def _by_reason(cases: tuple[CaseResult, ...]) -> tuple[LeftOut, ...]:
    """Return the cases that were not run as one entry for each reason, with an example."""
    grouped: dict[str, list[CaseResult]] = {}
    for result in cases:
        grouped.setdefault(result.reason or "", []).append(result)
    return tuple(
        LeftOut(item=group[0].case.label, reason=reason, n=len(group))
        for reason, group in grouped.items()
    )


def _problem_badge(cases: tuple[CaseResult, ...]) -> Badge | None:
    """Return the verdict of the problem's own rule, which stands beside ours; None without one."""
    judged = [c.problem_rule for c in cases if c.problem_rule is not None]
    if not judged:
        return None
    return Badge.of(BadgeCode.PROBLEM_RULE, accepted=sum(judged), cases=len(judged))


def _torch_badge(computed_by: ComputedBy) -> Badge:
    work = computed_by.torch_work
    operations = tuple(dict.fromkeys(w.operation for w in work))
    return Badge.of(BadgeCode.TORCH_WORK, operations=operations, share=1 - computed_by.kernel_share)


class Replay(Value):
    """One case run again in the interpreter: the first access outside a tensor, if there was one.

    `note` says why there is no answer, where there is none.
    """

    kind: Literal["replay"] = "replay"
    case: Case
    error: KernelError | None = None
    note: str | None = None


class FailurePattern(Value):
    """A condition that every failed case has and no passed one, or nearly so.

    Attributes:
        condition: as text, such as `x transposed` or `join_kernel: n_parts is several blocks of B`.
        n_failed: cases with the condition.
        n_passed: all passed cases.
        n_passed_with: those of them that have the condition, too.
        n_failed_without: failed cases that do not have it.
    """

    condition: str
    n_failed: int
    n_passed: int
    n_passed_with: int = 0
    n_failed_without: int = 0


class Sanitized(Value):
    """Findings of one compute-sanitizer tool on a case; `note` where it could not be run."""

    tool: str
    case: Case
    findings: tuple[str, ...] = ()
    n_errors: int | None = None
    note: str | None = None


class Plan(Value):
    """Cases that a validation will run, before any version is loaded.

    Attributes:
        scope: combinations of values that the cases have; None for a quick plan and named shapes.
        not_run: the cases of it that this device does not run; each says why.
    """

    kind: Literal["plan"] = "plan"
    op: str
    plan: str
    seed: int
    dtypes: tuple[str, ...]
    cases: tuple[Case, ...]
    scope: PlanScope | None = None
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
        """True if all passed."""
        return self.status is Status.PASSED
