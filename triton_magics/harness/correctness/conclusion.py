"""The verdict of a validation, from the results of its cases."""

from __future__ import annotations

import time

from triton_magics.harness.correctness.launch_evidence import LaunchEvidence
from triton_magics.model import CaseResult, KernelError, Status, Validation
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
