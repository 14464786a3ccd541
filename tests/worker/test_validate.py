"""Verdicts of a validation: in parts, with a tolerance of one's own, of what is refused."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, Recorder, job_for, run_cases, validated
from triton_magics import ops
from triton_magics.model import Case, CaseStatus, Status
from triton_magics.worker import cuts, validate
from triton_magics.worker.cases import make_inputs
from triton_magics.worker.guard import broken, guarding, place
from triton_magics.worker.load import UserFault, load_version
from triton_magics.worker.subject import Subject

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


@pytest.mark.parametrize(("kernel", "shape"), PARTED, ids=[kernel for kernel, _ in PARTED])
def test_a_verdict_in_parts_is_the_verdict_at_once(
    kernel: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(shape=shape, dtype="float32", seed=5)
    (at_once,) = run_cases(KERNELS / f"{kernel}.py", case)
    monkeypatch.setattr(cuts, "PART", 200)
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
    asked: list[tuple[int, ...]] = []
    op = ops.load("matmul")

    def noted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if a.dtype is torch.float64:
            asked.append(tuple(a.shape))
        return op.reference(a, b)

    monkeypatch.setattr(cuts, "PART", 16 * 33)
    parted = dataclasses.replace(op, reference=noted)
    path = KERNELS / "matmul_right.py"
    job = job_for(path)
    subject = Subject(parted, load_version(job.version), job, CPU, path.read_text())
    result, _ = validate.run_case(subject, Case(shape=(64, 33, 16), dtype="float32", seed=5))
    assert result.status is CaseStatus.PASSED
    assert {rows for rows, _ in asked[:4]} == {16}  # and then the checks that call again
    assert len(asked) > 4


def test_inputs_whose_memory_was_given_back_are_there_again_with_their_bands() -> None:
    case = Case(shape=(7, 13), dtype="float32", layout="strided", seed=5)
    inputs = make_inputs(ops.load("vector_add"), case, CPU)
    inputs.give_back()
    assert [g.buffer.untyped_storage().nbytes() for g in inputs.guards] == [0, 0]
    inputs.reset()
    assert inputs.changed() is None
    assert broken(list(inputs.guards)) == []
    assert torch.equal(inputs.given[0], inputs.pristine[0])


def test_a_tolerance_of_ones_own_is_used_and_said_to_be_loosened() -> None:
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


def test_a_write_one_element_outside_breaks_the_band_and_says_the_side() -> None:
    tensor, guarded = place((4, 4), (4, 1), torch.empty(0), "input 0")
    assert broken([guarded]) == []
    beyond = tensor.as_strided((17,), (1,), tensor.storage_offset())
    beyond[16] = 1.0
    assert broken([guarded]) == ["input 0: 4 bytes after it were overwritten"]


def test_memory_that_was_never_set_is_nan_and_cleared_memory_is_not() -> None:
    with guarding() as memory:
        unset, cleared = torch.empty(5), torch.zeros(5)
        copied = torch.ones(5).clone()
    assert unset.isnan().all()
    assert cleared.eq(0).all()
    assert copied.eq(1).all()
    assert len(memory.guarded) == 4


def test_the_interpreter_says_what_it_did_not_run_and_why() -> None:
    verdict = validated(RIGHT, plan="quick", dtypes=("float32", "bfloat16"), budget_s=30)
    assert verdict.status is Status.PASSED
    assert verdict.triton_kernels == ("softmax_kernel",)
    assert verdict.torch_ops == ("clone",)  # of the transposed case, by its contiguous()
    reasons = {c.case.label: c.reason for c in verdict.not_run}
    assert "bfloat16 wrongly" in str(reasons["small 256x256 bfloat16"])
    assert "too large for the interpreter" in str(reasons["large 4096x4096 float32"])
    assert all(c.case.dtype == "float32" for c in verdict.run_cases)


def test_a_used_up_budget_leaves_cases_not_run_and_says_so() -> None:
    verdict = validated(RIGHT, plan="full", dtypes=("float32",), budget_s=0.2)
    assert any("budget of 0.2 s of CPU time" in str(c.reason) for c in verdict.not_run)
    ran = [c.case for c in verdict.run_cases]
    assert ran[0].shape == (1, 1)  # what is cheap comes first
    assert ran[-1].size == "small"  # and the small size is always run


def test_a_version_that_refuses_every_input_is_rejected_not_passed() -> None:
    verdict = validated(KERNELS / "refuses_everything.py", shapes=((7, 13),))
    assert verdict.status is Status.REJECTED
    assert "only 17 dimensions" in str(verdict.message)


def test_cases_that_could_not_tell_a_lower_precision_apart_carry_no_verdict_alone() -> None:
    job = job_for(RIGHT, shapes=((1, 1),), dtypes=("float32",))  # softmax of one element is 1
    verdict, _ = validate.run(job, Recorder())
    assert verdict.status is Status.FAILED
    assert "no calibrated case passed" in str(verdict.message)


def test_an_undeclared_dtype_is_the_callers_to_mend() -> None:
    with pytest.raises(UserFault, match="softmax has no dtype 'int8'; it declares float32"):
        validated(RIGHT, dtypes=("int8",))


def test_an_error_in_the_wrapper_names_its_line_in_the_cell_and_in_the_file() -> None:
    path = KERNELS / "divides_by_zero.py"
    result = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))[0]
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "1 // 0" in t)
    assert result.error is not None
    assert result.error.kind == "ZeroDivisionError"
    assert (result.error.file_line, result.error.cell_line) == (line, line + 1)
    assert "1 // 0" in str(result.error.code)
