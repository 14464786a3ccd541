"""The verdict that the results of all cases come to."""

from __future__ import annotations

import time

from triton_magics.engine.protocol import ValidateJob
from triton_magics.model import SIZES, CaseResult, CaseStatus, KernelError, Status, Validation
from triton_magics.worker.cases import OWN
from triton_magics.worker.evidence import Evidence


def badges(job: ValidateJob) -> tuple[str, ...]:
    """What must be said of a verdict that such a job comes to."""
    said = []
    if job.rtol is not None or job.atol is not None:
        own = [f"{n}={v:g}" for n, v in (("rtol", job.rtol), ("atol", job.atol)) if v is not None]
        said.append(f"your own tolerance: {', '.join(own)}")
    if job.plan == "quick":
        said.append("quick")
    if job.shapes:
        said.append("only some shapes")
    return tuple(said)


def done(
    base: Validation,
    results: tuple[CaseResult, ...],
    started: float,
    *,
    evidence: Evidence | None = None,
    error: KernelError | None = None,
    status: Status | None = None,
) -> Validation:
    """The validation with its verdict."""
    first = next((r for r in results if r.status.failed), None)
    status, message = (status, None) if status else overall(base, results)
    loosened = any(r.tolerance and r.tolerance.loosened for r in results)
    said = (*base.badges, "loosened tolerance") if loosened else base.badges
    return base.model_copy(
        update={
            "status": status,
            "cases": results,
            "triton_kernels": tuple(evidence.kernels) if evidence else (),
            "triton_share": evidence.share if evidence else None,
            "torch_ops": tuple(evidence.torch_ops) if evidence else (),
            "error": error or (first.error if first else None),
            "message": message,
            "badges": said,
            "duration_s": time.monotonic() - started,
        }
    )


def overall(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Passed, or the first thing that speaks against it.

    Passed means: no case failed; every size that can run here passed in every dtype that can;
    and per such dtype at least one passed case was calibrated.
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
        return Status.REJECTED, f"it refuses every input: {ran[0].reason}"
    for dtype in base.dtypes:
        own = [r for r in ran if r.case.dtype == dtype]
        refused = next(
            (r for r in own if r.case.size in (*SIZES, OWN) and r.status is CaseStatus.REJECTED),
            None,
        )
        if refused:
            return Status.REJECTED, f"it refuses {refused.case.label}: {refused.reason}"
        if own and not any(r.calibrated for r in own if r.status is CaseStatus.PASSED):
            return (
                Status.FAILED,
                f"no calibrated case passed in {dtype}: the verdict would mean nothing",
            )
    if not any(r.status is CaseStatus.PASSED for r in ran):
        return Status.FAILED, "no case could be run here"
    return Status.PASSED, None
