"""Values that an op declares itself, in functions like `make_inputs`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, run_cases
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.shape_variants import is_defined
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, CaseStatus

UNSEEN = KERNELS.parent / "unseen_kernels"
LOSSES = ("cross_entropy", "linear_cross_entropy")
ALL_SEVEN = """
import torch
SIZES = {"small": (64,), "medium": (128,), "large": (256,)}
DTYPES = ("float32", "float16")
def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)
def sevens(shape, dtype, device, generator):
    assert shape != (3,), "no three"
    return torch.full(shape, 7.0, dtype=dtype, device=device)
VALUES = {"all seven": sevens}
def reference(x):
    return 2 * x
"""


def test_an_op_of_ones_own_is_tested_with_its_values(tmp_path: Path) -> None:
    (path := tmp_path / "reference.py").write_text(ALL_SEVEN)
    op = operators.load_file(path, "double")
    job = PlanJob(op=OpRef.own("double", ALL_SEVEN), plan="full", seed=7, device_kind="gpu")
    cases = [c for c in plan_cases(op, job, DeviceFacts()).cases if c.special == "all seven"]
    assert {c.dtype for c in cases} == {"float32", "float16"}
    assert max(op.shapes) in {c.shape for c in cases}
    for case in cases:
        (x,) = make_pristine(op, case, CPU)
        assert (tuple(x.shape), x.dtype) == (case.shape, getattr(torch, case.dtype))
        assert bool((x == 7).all())
    with pytest.raises(
        UserFault, match="VALUES failed for 3 float32, all seven: AssertionError: no three"
    ):
        make_pristine(op, cases[0].evolve(shape=(3,), dtype="float32"), CPU)


def test_a_reference_may_be_an_object_without_a_hash() -> None:
    @dataclasses.dataclass
    class Double:
        factor: float = 2.0

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return self.factor * x

    op = dataclasses.replace(operators.load("relu"), reference=Double())
    assert is_defined(op, (7, 13))
    assert is_defined(op, (7, 13))


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_has_predictions_that_are_sure_and_right(name: str) -> None:
    op = operators.load(name)
    for seed in range(9):
        case = Case(shape=op.shapes[-1], dtype="float32", seed=seed, special="sure and right")
        inputs = make_pristine(op, case, CPU)
        logits = inputs[0] if name == "cross_entropy" else inputs[0] @ inputs[1].T
        target = inputs[-1]
        assert torch.equal(logits.argmax(1), target)
        own = logits.gather(1, target[:, None])
        assert 7.5 < float(own.min()) <= float(own.max()) < 15.6
        assert float(logits.scatter(1, target[:, None], 0.0).abs().max()) < 0.5


def test_tiles_that_a_sure_prediction_needs_are_missed_in_a_loss() -> None:
    case = Case(shape=(3, 1000, 31), dtype="float32", seed=0, special="sure and right")
    wrong = UNSEEN / "twentysixth_after" / "linear_cross_entropy_far_tiles.py"
    (result,) = run_cases(wrong, case)
    assert result.status is CaseStatus.WRONG_VALUES
    right = UNSEEN / "twentysixth" / "linear_cross_entropy_last_program.py"
    assert run_cases(right, case)[0].status is CaseStatus.PASSED
