"""Tests of the cases that the interpreter skips for its budget."""

from __future__ import annotations

import pytest

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness.skip_rules import CpuTimeMeter, skip_reason
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.validate_job import _Tally
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, CaseStatus

SMALL = Case(shape=(256, 256), dtype="float32", size="small", seed=1)
MEDIUM = Case(shape=(1024, 1024), dtype="float32", size="medium", seed=2)


def subject_with(budget_s: float | None) -> Subject:
    job = job_for(KERNELS / "right" / "dropout_flat.py", budget_s=budget_s)
    return Subject(operators.load("dropout"), load_version(job.version), job, CPU, "")


def reason(*, cpu_s: float, wall_s: float) -> str | None:
    """Return the reason to skip medium after a small case of that duration."""
    subject = subject_with(10.0)
    small = CaseResult(case=SMALL, status=CaseStatus.PASSED, error_share=0.1, duration_s=wall_s)
    return skip_reason(subject, MEDIUM, [small], CpuTimeMeter({SMALL: cpu_s}))


def test_what_else_the_machine_does_does_not_leave_medium_out() -> None:
    assert reason(cpu_s=0.5, wall_s=9.0) is None  # 16 times the programs: 8 s


def test_medium_is_left_out_where_it_would_pass_the_budget() -> None:
    note = reason(cpu_s=0.7, wall_s=0.1)
    assert note == "it would exceed the interpreter's budget of 10 s of CPU time"


@pytest.mark.parametrize(("budget_s", "share"), [(10.0, 0.4), (1.0, 1.0), (None, 0.0)])
def test_the_spent_part_of_the_budget(budget_s: float | None, share: float) -> None:
    tally = _Tally(subject_with(budget_s))
    tally.meter._started_s -= 4.0
    assert tally.budget_share == pytest.approx(share, abs=0.05)
