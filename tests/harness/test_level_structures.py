"""Tests of rows and products whose parts lie at levels."""

from __future__ import annotations

import math

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_numbers import levels_at_numbers
from triton_magics.harness.correctness.level_structures import weighs_by_exp
from triton_magics.model import Case

OF_WEIGHTS = {"attention", "cross_entropy", "gqa", "linear_cross_entropy", "mha", "softmax"}


@pytest.mark.parametrize("op", operators.names())
def test_only_ops_of_weights_ignore_what_is_far_below(op: str) -> None:
    assert weighs_by_exp(operators.load(op)) is (op in OF_WEIGHTS)


def rows_of(special: str) -> torch.Tensor:
    case = Case(shape=(64, 8_209), dtype="float32", special=special, seed=3)
    (x,) = make_pristine(operators.load("softmax"), case, CPU)
    return x


def test_rows_have_two_levels_about_the_number_apart() -> None:
    x = rows_of("parts at levels 88.0")
    largest = x.amax(1, keepdim=True)
    is_below = x < largest - 1
    distance = (largest - x)[is_below]
    assert 0.79 * 88 * math.log(2) < distance.min() < 0.94 * 88 * math.log(2)
    assert 1.06 * 88 < distance.max() < 1.21 * 88
    per_row = (largest - x).amax(1)
    for least, most in ((0.945, 1.0), (1.0, 1.055)):  # just under and just over it
        assert ((per_row > least * 88) & (per_row < most * 88)).sum() >= 8
    n_above = (~is_below).sum(1)
    assert 20 <= (n_above == 1).sum() <= 44
    assert is_below.any(1).all()
    assert 20 <= (largest < -150).sum() <= 44


def test_parts_of_most_rows_are_left_out_and_no_row_is() -> None:
    x = rows_of("parts at levels and -inf 104.0")
    is_left_out = x.isinf()
    assert 10 <= is_left_out.any(1).sum() <= 35
    assert not is_left_out.all(1).any()
    blocks = is_left_out[:, :8_192].reshape(64, -1, 2_048)
    low = x.masked_fill(is_left_out, -math.inf).amax(1) < -150
    assert (blocks.all(-1).any(1) & low).any()  # a whole block beside others far below 0


@pytest.mark.parametrize(("op", "shape"), [
    ("linear_cross_entropy", (65, 127, 129)), ("mha", (1, 2, 65, 32)),
])  # fmt: skip
def test_products_lie_at_the_levels(op: str, shape: tuple[int, ...]) -> None:
    case = Case(shape=shape, dtype="float32", special="products at levels 20.0", seed=5)
    first, second, *_ = make_pristine(operators.load(op), case, CPU)
    products = first.double() @ second.double().mT
    if first.dim() == 4:
        products /= first.shape[-1] ** 0.5
    is_below = products < -5
    assert is_below.any()
    assert not is_below.all()
    assert (products[~is_below].abs() < 1).all()
    assert 11 < -products[is_below].max() < 20 * 0.94
    assert 20 * 1.05 < -products[is_below].min() < 25


def test_compared_numbers_and_fractions_are_levels() -> None:
    numbers = (0.5, 17.4, 20, 64, 88.0, 4096)
    assert levels_at_numbers(numbers, {20, 4096}, n_most=2) == [20.0, 88.0]
    assert levels_at_numbers(numbers, {20, 4096}, n_most=1) == [20.0]
    assert levels_at_numbers((), (), n_most=2) == []
