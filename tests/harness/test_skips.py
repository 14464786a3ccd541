"""Tests of the cases that the interpreter skips for its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness.one_case import run_case
from triton_magics.harness.correctness.skip_rules import CpuTimeMeter, skip_reason
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.validate_job import _Tally
from triton_magics.harness.load import load_version
from triton_magics.languages.triton.child import bounds
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


ROWS = Case(shape=(70_001, 3), dtype="float32", shape_class="many rows",
            extent="over 65,535 rows", seed=1)  # fmt: skip
TALL = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)[None, :]
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=mask)
        tl.store(out_ptr + ROW * n_cols + cols, tl.maximum(x, 0.0), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.zeros_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // max(n_cols, 1)
    kernel[(triton.cdiv(n_rows, HEIGHT),)](x, out, n_rows, n_cols, ROWS=HEIGHT, BLOCK=64)
    return out
"""


def tall_subject(folder: Path, *, height: int = 1024, row: str = "rows") -> Subject:
    path = folder / "relu.py"
    source = TALL.replace("HEIGHT", str(height)).replace("ROW *", f"{row} *")
    path.write_text(f'"""A kernel.\n\nop: relu\n"""\n{source}')
    job = job_for(path, budget_s=20.0)
    return Subject(operators.load("relu"), load_version(job.version), job, CPU, "")


def test_many_rows_run_where_few_programs_compute_them(tmp_path: Path) -> None:
    tall = tall_subject(tmp_path)
    assert skip_reason(tall, ROWS, [], CpuTimeMeter()) is None
    low = tall_subject(tmp_path, height=1)
    note = skip_reason(low, ROWS, [], CpuTimeMeter())
    assert note == "the interpreter takes too long for its 70,001 programs"


def test_what_a_version_keeps_is_never_the_result_of_a_count() -> None:
    path = KERNELS / "classes" / "randomness" / "dropout_keeps_the_mask.py"
    job = job_for(path, budget_s=20.0)
    subject = Subject(operators.load("dropout"), load_version(job.version), job, CPU, "")
    wide = Case(
        shape=(2, 7_001), dtype="float32", shape_class="long rows", scalars=(("p", 0.5),), seed=3,
        extent="over 65,536 columns",
    )  # fmt: skip
    assert subject.calls.dry_run(subject.make_inputs(wide).arguments).programs == 28
    assert skip_reason(subject, wide, [], CpuTimeMeter()) is None
    assert subject.version is not None
    assert subject.version.module.MASKS == {}
    result, _ = run_case(subject, wide)
    assert result.status is CaseStatus.PASSED, result.reason


@pytest.mark.parametrize("row", ["rows", "rows.to(tl.uint16).to(tl.int64)"])
def test_a_row_in_16_bits_fails_at_many_rows(tmp_path: Path, row: str) -> None:
    result, _ = run_case(tall_subject(tmp_path, row=row), ROWS)
    assert result.status is (CaseStatus.PASSED if row == "rows" else CaseStatus.WRONG_VALUES)


@pytest.mark.in_turn
def test_an_extent_ends_after_its_share_of_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = ROWS.evolve(shape=(1, 4_001), extent="over 65,536 columns")
    subject = tall_subject(tmp_path)
    passing, _ = run_case(subject, wide.evolve(extent=""))
    assert passing.status is CaseStatus.PASSED
    clock = iter(range(1, 10_000))
    monkeypatch.setattr(bounds, "process_time", lambda: next(clock) * 0.05)
    monkeypatch.setattr(bounds, "LOOK_S", 0.0)  # however fast the machine is
    ended, _ = run_case(subject, wide)
    assert ended.status is CaseStatus.NOT_RUN
    assert ended.reason == "a call takes the interpreter more than 2 s; a GPU is needed"
    wider = wide.evolve(shape=(1, 5_001))
    note = skip_reason(subject, wider, [ended], CpuTimeMeter())
    assert note == "the smaller 1x4001 float32 takes the interpreter too long"
    narrow = wide.evolve(shape=(2_000, 64))
    assert skip_reason(subject, narrow, [ended], CpuTimeMeter()) is None
