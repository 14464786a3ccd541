"""The verdict of a validation, from the results of its cases."""

from __future__ import annotations

import time

from triton_magics.harness.correctness.case_plan import count_combinations
from triton_magics.harness.correctness.launch_evidence import LaunchEvidence
from triton_magics.model import (
    CaseResult,
    CaseStatus,
    KernelError,
    PlanScope,
    Status,
    Validation,
)


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
        scope=_count_checked(base.scope, results),
        triton_kernels=tuple(evidence.kernels) if evidence else (),
        computed_by=evidence.computed_by(results) if evidence else None,
        torch_ops=tuple(evidence.torch_ops) if evidence else (),
        error=error or (first.error if first else None),
        message=message,
        duration_s=time.monotonic() - started,
    )


def _count_checked(scope: PlanScope | None, results: tuple[CaseResult, ...]) -> PlanScope | None:
    """Return the scope with the combinations of the cases that ran and were not refused."""
    if scope is None:
        return None
    unchecked = (CaseStatus.NOT_RUN, CaseStatus.REJECTED)
    checked = [r.case for r in results if r.status not in unchecked]
    return scope.evolve(n_covered=count_combinations(checked, scope.strength))


def overall_verdict(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Return the status and a message: passed, or the first reason against it.

    Passed means: no case failed, and every size that can run here passed in every dtype that can.
    """
    failed = next((r for r in results if r.status.failed), None)
    if failed:
        kinds = {
            CaseStatus.COMPILE_ERROR: Status.COMPILE_ERROR,
            CaseStatus.RUNTIME_ERROR: Status.RUNTIME_ERROR,
            CaseStatus.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
        }
        return kinds.get(failed.status, Status.FAILED), None
    ran = [r for r in results if r.status is not CaseStatus.NOT_RUN]
    if ran and all(r.status is CaseStatus.REJECTED for r in ran):
        return Status.REJECTED, f"it rejects every input: {ran[0].reason}"
    for dtype in base.dtypes:
        own = [r for r in ran if r.case.dtype == dtype]
        refused = next((r for r in own if r.case.size and r.status is CaseStatus.REJECTED), None)
        if refused:
            return Status.REJECTED, f"it rejects {refused.case.label}: {refused.reason}"
    if not any(r.status is CaseStatus.PASSED for r in ran):
        return _nothing_ran(base, results)
    return Status.PASSED, None


def _nothing_ran(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Return the verdict on a version of which no case ran: only a GPU may be able to."""
    if base.device_kind == "interpreter" and results:
        return Status.NO_GPU, results[0].reason
    return Status.FAILED, "no case could be run here"
