"""Verdicts of a validation: in parts, with a tolerance of one's own, of what is refused."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, Recorder, job_for, run_cases, run_validation
from triton_magics import operators
from triton_magics.harness.correctness import one_case, row_chunks, validate_job
from triton_magics.harness.correctness.call_record import CallFailure, VersionRaised
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.guard_bands import (
    allocate_guarded,
    find_damage,
    guard_allocations,
)
from triton_magics.harness.correctness.skip_rules import CpuTimeMeter
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault, load_version
from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import (
    Badge,
    BadgeCode,
    Case,
    CaseStatus,
    KernelError,
    Status,
    Validation,
)

RIGHT = KERNELS / "softmax_right.py"
PARTED = [
    ("softmax_right", (65, 33)),
    ("skips_the_tail", (65, 33)),
    ("starts_one_too_late", (65, 33)),
    ("forgets_other", (65, 33)),
    ("matmul_right", (65, 33, 47)),
    ("drops_the_last_k_block", (33, 29, 45)),
    ("vector_add_right", (65, 33)),
]


@pytest.mark.in_turn
def test_the_search_for_a_cause_is_no_time_of_the_version() -> None:
    report = Recorder()
    job = job_for(KERNELS / "wrong" / "attention_forgets_the_scale.py", shapes=((1, 1, 7, 16),))
    validate_job.run(job, report)
    assert "searching for the cause at 1x1x7x16 float32" in report.stages
    assert "searching for what the wrong cases share" in report.stages


@pytest.mark.parametrize(("kernel", "shape"), PARTED, ids=[kernel for kernel, _ in PARTED])
@pytest.mark.in_turn
def test_a_verdict_in_parts_is_the_verdict_at_once(
    kernel: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(shape=shape, dtype="float32", seed=5)
    (at_once,) = run_cases(KERNELS / f"{kernel}.py", case)
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 200)
    (in_parts,) = run_cases(KERNELS / f"{kernel}.py", case)
    for name in ("status", "calibrated", "seeds_rule", "reason"):
        assert getattr(in_parts, name) == getattr(at_once, name), name
    assert in_parts.error_share == pytest.approx(at_once.error_share, rel=0.5)
    a, b = in_parts.mismatch, at_once.mismatch
    assert (a is None) == (b is None)
    if a and b:
        assert (a.n_wrong, a.n_elements, a.where) == (b.n_wrong, b.n_elements, b.where)
        assert (a.picture, a.cause) == (b.picture, b.cause)
        assert a.index == b.index
        assert a.expected == pytest.approx(b.expected)


def test_the_oracle_of_a_large_case_is_never_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request: list[tuple[int, ...]] = []
    op = operators.load("matmul")

    def noted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.dtype is torch.float64:
            request.append(tuple(a.shape))
        return op.reference(a, b)

    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 16 * 33)
    parted = dataclasses.replace(op, reference=noted)
    path = KERNELS / "matmul_right.py"
    job = job_for(path)
    subject = Subject(parted, load_version(job.version), job, CPU, path.read_text())
    result, _ = one_case.run_case(subject, Case(shape=(64, 33, 16), dtype="float32", seed=5))
    assert result.status is CaseStatus.PASSED
    assert {rows for rows, _ in request[:4]} == {16}  # and then the checks that call again
    assert len(request) > 4


def test_own_tolerance_is_used_and_marked_as_loosened() -> None:
    result = run_cases(
        KERNELS / "rounds_to_tf32.py", Case(shape=(7, 13), dtype="float32", seed=1), rtol=0.1
    )[0]
    assert result.status is CaseStatus.PASSED
    assert result.tolerance is not None
    assert result.tolerance.loosened
    assert result.calibrated is False
    strict = run_cases(
        KERNELS / "rounds_to_tf32.py", Case(shape=(7, 13), dtype="float32", seed=1), rtol=1e-5
    )[0]
    assert strict.status is CaseStatus.WRONG_VALUES


def test_a_write_one_element_outside_reports_its_side() -> None:
    tensor, guarded = allocate_guarded((4, 4), (4, 1), torch.empty(0), "input 0")
    assert find_damage([guarded]) == []
    beyond = tensor.as_strided((17,), (1,), tensor.storage_offset())
    beyond[16] = 1.0
    assert find_damage([guarded]) == ["input 0: 4 bytes after it were overwritten"]


def test_uninitialized_memory_is_nan_and_zeroed_is_not() -> None:
    with guard_allocations() as memory:
        unset, cleared = torch.empty(5), torch.zeros(5)
        copied = torch.ones(5).clone()
    assert unset.isnan().all()
    assert cleared.eq(0).all()
    assert copied.eq(1).all()
    assert len(memory.guarded) == 4


@pytest.mark.in_turn
def test_the_interpreter_says_what_it_did_not_run_and_why() -> None:
    verdict = run_validation(RIGHT, plan="quick", dtypes=("float32", "bfloat16"), budget_s=30)
    assert verdict.status is Status.PASSED
    assert verdict.triton_kernels == ("softmax_kernel",)
    assert verdict.torch_ops == ("clone",)  # of the transposed case, by its contiguous()
    reasons = {c.case.label: c.reason for c in verdict.not_run}
    assert "bfloat16 wrongly" in str(reasons["small 256x256 bfloat16"])
    assert "too large for the CPU" in str(reasons["large 4096x4096 float32"])
    assert all(c.case.dtype == "float32" for c in verdict.run_cases)


@pytest.mark.in_turn
def test_a_used_up_budget_leaves_cases_not_run_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = itertools.count(step=0.02)  # a case reads it a few times
    monkeypatch.setattr(CpuTimeMeter, "spent_s", property(lambda meter: next(clock)))
    verdict = run_validation(RIGHT, plan="full", dtypes=("float32",), budget_s=0.4)
    assert any("budget of 0.4 s of CPU time" in str(c.reason) for c in verdict.not_run)
    ran = [c.case for c in verdict.run_cases]
    assert ran[0].shape == (7, 13)  # what is cheap comes first
    assert ran[-1].size == "small"  # and the small size is always run


def test_a_version_that_refuses_every_input_is_rejected() -> None:
    verdict = run_validation(KERNELS / "refuses_everything.py", shapes=((7, 13),))
    assert verdict.status is Status.REJECTED
    assert "only 17 dimensions" in str(verdict.message)


def test_uncalibrated_cases_alone_pass_with_a_badge() -> None:
    job = job_for(RIGHT, shapes=((1, 1),), dtypes=("float32",))  # softmax of one element is 1
    verdict, _ = validate_job.run(job, Recorder())
    assert verdict.status is Status.PASSED
    assert Badge.of(BadgeCode.UNCALIBRATED, dtypes=("float32",)) in verdict.badges
    assert not verdict.is_conclusive


def test_an_undeclared_dtype_is_the_callers_to_mend() -> None:
    with pytest.raises(UserFault, match="softmax has no dtype 'int8'; it declares float32"):
        run_validation(RIGHT, dtypes=("int8",))


def test_a_wrapper_error_names_its_line_in_cell_and_file() -> None:
    path = KERNELS / "divides_by_zero.py"
    result = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))[0]
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "1 // 0" in t)
    assert result.error is not None
    assert result.error.kind == "ZeroDivisionError"
    assert (result.error.file_line, result.error.cell_line) == (line, line + 1)
    assert "1 // 0" in str(result.error.code)


def test_dropout_with_p_0_may_launch_nothing() -> None:
    path = KERNELS / "computed_by" / "right" / "dropout_without_work.py"
    cases = [Case(shape=(7, 13), dtype="float32", seed=seed) for seed in range(8)]
    results = run_cases(path, *cases)
    op = operators.load("dropout")
    drawn = {make_pristine(op, case, CPU)[1] for case in cases}
    assert 0.0 in drawn
    assert [r.status for r in results] == [CaseStatus.PASSED] * len(cases)


REFUSES_STRIDES = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x < 0, FACTOR, x), mask=offsets < n)

def triton_relu(x):
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    return out
"""


def relu_file(folder: Path, factor: str) -> Path:
    path = folder / "relu.py"
    text = REFUSES_STRIDES.replace("FACTOR", factor)
    path.write_text(f'"""One kernel.\n\nop: relu\n"""\n{text}')
    return path


@pytest.mark.slow
def test_rejected_layouts_are_checked_with_contiguous_inputs(tmp_path: Path) -> None:
    verdict = run_validation(relu_file(tmp_path, "0.0"), dtypes=("float32",), budget_s=30)
    rejected = [c.case for c in verdict.rejected_cases if c.case.shape_class]
    assert len(rejected) > 30
    right = {c.case for c in verdict.cases if c.status is CaseStatus.PASSED}
    assert {c.evolve(layouts=()) for c in rejected} <= right
    assert verdict.scope is not None
    assert verdict.scope.n_covered < verdict.scope.n_possible


@pytest.mark.slow
def test_a_wrong_version_is_not_called_for_every_combination(tmp_path: Path) -> None:
    verdict = run_validation(relu_file(tmp_path, "x * 0.5"), dtypes=("float32",), budget_s=30)
    assert verdict.status is Status.FAILED
    assert 12 <= len(verdict.failed_cases) <= 24
    assert {c.case.size for c in verdict.failed_cases} >= {"small", "medium"}
    assert "12 cases have failed already" in {c.reason for c in verdict.not_run}


WRONG_IF_TALL = "    if n_rows == 127:\n        out[7] *= 1.01\n    return out.view(x.shape)"


def raise_driver_error(subject: object, case: Case) -> bool:
    failure = CallFailure(
        error=KernelError(kind="RuntimeError", message="CUDA error: an illegal memory access"),
        text="",
    )
    raise VersionRaised(failure, Launches())


def raise_own_error(subject: object, case: Case) -> bool:
    raise RuntimeError("the judge's own")


@pytest.mark.slow
@pytest.mark.parametrize("fault", [raise_driver_error, raise_own_error])
def test_a_trial_for_an_explanation_does_not_cost_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., bool]
) -> None:
    source = (KERNELS / "softmax_right.py").read_text()
    (path := tmp_path / "kernel.py").write_text(
        source.replace("    return out.view(x.shape)", WRONG_IF_TALL)
    )
    monkeypatch.setattr(validate_job, "passes", fault)
    job = job_for(path, budget_s=10.0, dtypes=("float32",))
    verdict, is_spent = validate_job.run(job, Recorder())
    assert isinstance(verdict, Validation)
    assert verdict.status is Status.FAILED
    assert is_spent
