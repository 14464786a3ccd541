"""The verdict of a validation, from the results of its cases."""

from __future__ import annotations

import time

from triton_magics.harness.correctness.launch_evidence import LaunchEvidence
from triton_magics.model import (
    EVERY_INPUT,
    PLAIN,
    UNALIGNED,
    CaseResult,
    CaseStatus,
    CauseCode,
    KernelError,
    Status,
    Validation,
)
from triton_magics.model.overall_verdict import count_checked, overall_verdict


def conclude_validation(
    base: Validation,
    results: tuple[CaseResult, ...],
    started: float,
    *,
    evidence: LaunchEvidence | None = None,
    error: KernelError | None = None,
    status: Status | None = None,
) -> Validation:
    """Return the validation with its verdict."""
    first = next((r for r in results if r.status.failed), None)
    status, message = (status, None) if status else overall_verdict(base, results)
    return base.evolve(
        status=status,
        cases=results,
        scope=count_checked(base.scope, results),
        triton_kernels=tuple(evidence.kernels) if evidence else (),
        computed_by=evidence.computed_by(results) if evidence else None,
        torch_ops=tuple(evidence.torch_ops) if evidence else (),
        error=error or (first.error if first else None),
        message=message,
        duration_s=time.monotonic() - started,
    )


def without_refuted_strides(results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
    """Return the results in which no stride is called wrong where another shape passes.

    Where a case of other lengths passes in the same layouts, it may as well be a length or a mask
    of the way for that layout: the result says what was seen, and names no cause.
    """
    right = {
        frozenset(r.case.layouts)
        for r in results
        if r.status is CaseStatus.PASSED and r.case.layouts
        if r.case.special == PLAIN and min(r.case.shape) > 1
    }
    return tuple(_doubt_stride(r) if frozenset(r.case.layouts) in right else r for r in results)


def _doubt_stride(result: CaseResult) -> CaseResult:
    cause = result.mismatch.cause if result.mismatch else None
    if cause is None or cause.code is not CauseCode.WRONG_STRIDE or not cause.layout:
        return result
    if cause.as_if or cause.evidence or cause.layout == UNALIGNED:
        return result
    name = "each input" if cause.tensor == EVERY_INPUT else cause.tensor
    text = f"right where {name} is contiguous, wrong where {cause.layout}, but not in all shapes"
    doubted = cause.evolve(code=CauseCode.REACH, evidence=text)
    return result.evolve(mismatch=result.mismatch and result.mismatch.evolve(cause=doubted))
