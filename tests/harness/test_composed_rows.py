"""Rows composed at random, and what only they show to be wrong."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.harness.kit import job_for
from tests.harness.test_cases_beside import INTERPRETER, UNSEEN
from tests.harness.test_plan import plan_of
from triton_magics import operators
from triton_magics.harness.correctness.case_plan import plan_cases
from triton_magics.harness.correctness.composed_rows import compose, compose_factor
from triton_magics.harness.correctness.usable_specials import usable_specials

pytestmark = pytest.mark.in_turn

SHAPE = (400, 257)


def draw_rows(dtype: torch.dtype, *, is_finite: bool = True, seed: int = 3) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    return compose(torch.randn(SHAPE, generator=draw).to(dtype), draw, is_finite=is_finite)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_composed_rows_have_parts_of_each_kind(dtype: torch.dtype) -> None:
    x = draw_rows(dtype)
    assert x.dtype is dtype
    assert x.isfinite().all()
    wide = x.double()
    steps = wide.diff(dim=1)
    counts = {
        "rises": (steps >= 0).all(1),
        "falls": (steps <= 0).all(1),
        "above zero": (wide > 0).all(1),
        "below zero": (wide < 0).all(1),
        "some zeros": (wide == 0).any(1) & (wide != 0).any(1),
        "over 100": wide.abs().amax(1) > 100,
        "under 2": wide.abs().amax(1) < 2,
        "over many scales": wide.abs().amax(1) > 1000 * wide.abs().median(1).values,
    }
    assert min(int(rows.sum()) for rows in counts.values()) >= 4, counts


def test_sums_of_composed_rows_stay_in_range_of_float16() -> None:
    assert draw_rows(torch.float16).float().abs().sum(1).max() <= 30_100


def test_products_of_composed_factors_stay_in_range_of_float16() -> None:
    for seed in range(8):
        draw = torch.Generator().manual_seed(seed)
        a, b = (
            compose_factor(torch.randn(129, 129, generator=draw).half(), draw) for _ in range(2)
        )
        assert (a.double().abs() @ b.double().abs()).max() <= 65_504


def test_half_of_the_rows_have_values_that_are_not_finite() -> None:
    x = draw_rows(torch.float32, is_finite=False)
    share = (~x.isfinite()).any(1).double().mean()
    assert 0.4 < share < 0.6
    for is_there in (x.isnan(), x == torch.inf, x == -torch.inf):
        assert is_there.any(1).sum() >= 20
    alone = (x.isfinite().sum(1) < 20) & x.isfinite().any(1)
    assert alone.sum() >= 2  # a window between -infinity


def test_each_seed_composes_other_rows() -> None:
    one, again, other = (draw_rows(torch.float32, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_plan_has_long_rows_of_each_dtype_and_longer_ones() -> None:
    own = [c for c in plan_of("softmax").cases if c.special == "composed rows"]
    assert {(c.shape, c.dtype) for c in own} >= {
        ((65, 4097), dtype) for dtype in ("float32", "float16", "bfloat16")
    }
    assert {c.shape for c in own} == {(65, 4097), (65, 8209), (65, 13)}
    for op in ("matmul", "attention", "linear_cross_entropy"):
        products = {c.special for c in plan_of(op).cases if "composed" in c.special}
        assert products == {"composed factors"}


def test_rows_are_one_longer_than_a_number_of_the_source() -> None:
    wrong = UNSEEN / "twentyfourth" / "layer_norm_parts_of_one_weight.py"
    plan = plan_cases(operators.load("layer_norm"), job_for(wrong), INTERPRETER)
    own = [c.shape for c in plan.cases if c.special == "composed rows" and c.extent]
    assert own == [(7, 2049), (7, 16385)]


def test_an_op_of_positive_numbers_has_no_composed_rows() -> None:
    op = dataclasses.replace(operators.load("softmax"), skip_values=("negative",))
    assert not [name for name in usable_specials(op, ["float32"]) if "composed" in name]
