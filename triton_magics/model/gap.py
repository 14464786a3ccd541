"""Reasons why a version, or an op, is not done."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from triton_magics.model.badge import Badge, BadgeCode
from triton_magics.model.base import Status, Value, short
from triton_magics.model.coverage import Coverage


class GapCode(StrEnum):
    """Kind of a gap."""

    REFERENCES = "references"
    FEW_VERSIONS = "few_versions"
    ALL_EXHAUSTED = "all_exhausted"
    COMPILE_ERROR = "compile_error"
    FAILED = "failed"
    NOT_VALIDATED = "not_validated"
    QUICK_PLAN = "quick_plan"
    SOME_SHAPES = "some_shapes"
    SOME_DTYPES = "some_dtypes"
    SOME_CASES = "some_cases"
    TOLERANCE = "tolerance"
    NOT_TIMED = "not_timed"


class Gap(Value):
    """One thing that is missing before a version, or an op, is done.

    Attributes:
        code: its kind.
        version: that it is about; None where it is about the op.
        dtypes: the only ones that were validated.
        written: number of versions so far.
        required: number of versions before the op may end.
    """

    code: GapCode
    version: str | None = None
    dtypes: tuple[str, ...] = ()
    written: int = 0
    required: int = 0

    @property
    def is_failure(self) -> bool:
        """True where a verdict, or the compiler, speaks against the version."""
        return self.code in (GapCode.FAILED, GapCode.COMPILE_ERROR)

    @property
    def words(self) -> str:
        """`v3: validated in float32 only`."""
        return f"{short(self.version)}: {self.reason}" if self.version else self.reason

    @property
    def reason(self) -> str:
        """`validated in float32 only`."""
        return _TEXTS[self.code].format(
            dtypes=" and ".join(self.dtypes), written=self.written, required=self.required
        )


_TEXTS: dict[GapCode, str] = {
    GapCode.REFERENCES: "references not shown yet",
    GapCode.FEW_VERSIONS: "{written} of {required} versions written",
    GapCode.ALL_EXHAUSTED: "every version failed too often",
    GapCode.COMPILE_ERROR: "does not compile",
    GapCode.FAILED: "failed its validation",
    GapCode.NOT_VALIDATED: "not yet validated",
    GapCode.QUICK_PLAN: "validated with the quick plan only",
    GapCode.SOME_SHAPES: "validated on some shapes only",
    GapCode.SOME_DTYPES: "validated in {dtypes} only",
    GapCode.SOME_CASES: "validated in part only",
    GapCode.TOLERANCE: "validated with another tolerance only",
    GapCode.NOT_TIMED: "not yet timed",
}
# A pass under these reservations may be one of a wrong version.
_TOLERANCE_BADGES = frozenset({BadgeCode.LOOSENED_TOLERANCE, BadgeCode.UNCALIBRATED})


def validation_gap(
    version: str,
    status: Status | None,
    coverage: Coverage | None,
    badges: Sequence[Badge],
    *,
    compilation: Status | None = None,
) -> Gap | None:
    """Return why a version is not validated in full; None where it is.

    This is the only rule for what ends an op and what may be the best version: a pass of the full
    plan in every declared dtype with the project's tolerances.

    Args:
        version: its name.
        status: of the validation in force; None without one.
        coverage: of that validation.
        badges: of that validation.
        compilation: status of the newest compilation; counts only without a verdict.
    """
    code = _gap_code(status, coverage, badges, compilation)
    if code is GapCode.SOME_DTYPES and coverage is not None:
        return Gap(code=code, version=version, dtypes=coverage.dtypes)
    return Gap(code=code, version=version) if code else None


def _gap_code(
    status: Status | None,
    coverage: Coverage | None,
    badges: Sequence[Badge],
    compilation: Status | None,
) -> GapCode | None:
    if status is not None and status.failed:
        return GapCode.COMPILE_ERROR if status is Status.COMPILE_ERROR else GapCode.FAILED
    if status is not Status.PASSED:
        failed = status is None and compilation is not None and compilation.failed
        return GapCode.COMPILE_ERROR if failed else GapCode.NOT_VALIDATED
    if coverage is None or not coverage.is_full:
        return _coverage_code(coverage or Coverage())
    # A badge with a version was carried by a benchmark, from the verdict at that time.
    loosened = any(b.code in _TOLERANCE_BADGES and b.version is None for b in badges)
    return GapCode.TOLERANCE if loosened else None


def _coverage_code(coverage: Coverage) -> GapCode:
    if coverage.is_spot_check:
        return GapCode.SOME_CASES if coverage.only else GapCode.SOME_SHAPES
    if coverage.plan == "quick":
        return GapCode.QUICK_PLAN
    return GapCode.SOME_DTYPES if coverage.missing_dtypes else GapCode.SOME_CASES
