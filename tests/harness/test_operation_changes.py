"""Changes of one operation, each against the formula with the fault written by hand."""

from __future__ import annotations

import math

import pytest
import torch

from tests.harness.change_kit import Reference, assert_changed, changed_outputs, normal
from triton_magics.model import CauseCode

X, Y = normal(5, 7), normal(5, 7, seed=2)
FORMULA = CauseCode.WRONG_FORMULA
softmax = torch.nn.functional.softmax


@pytest.mark.parametrize(
    ("reference", "text", "code", "faulty"),
    [
        (lambda x, y: torch.exp(x) * y, "`exp` is left out", FORMULA, lambda x, y: x * y),
        (lambda x, y: torch.exp(x) * y, "`exp` is `exp2`", FORMULA, lambda x, y: torch.exp2(x) * y),
        (
            lambda x, y: torch.exp(x) * y,
            "`exp` is taken of the negated argument",
            FORMULA,
            lambda x, y: torch.exp(-x) * y,
        ),
        (
            lambda x, y: torch.sigmoid(x) * y,
            "the sigmoid is the other half: its signs are reversed",
            FORMULA,
            lambda x, y: -torch.sigmoid(-x) * y,
        ),
        (
            lambda x, y: x / y,
            "the last two operands of `div` are exchanged",
            FORMULA,
            lambda x, y: y / x,
        ),
        (
            lambda x, y: (x * y) + torch.exp(x),
            "the result of `mul` is taken for that of `exp`",
            FORMULA,
            lambda x, y: x * y + x * y,
        ),
        (
            lambda x, y: torch.rsqrt(x * x + 0.5) * y,
            "0.5 is added to the result of `rsqrt`",
            FORMULA,
            lambda x, y: (torch.rsqrt(x * x) + 0.5) * y,
        ),
        (
            lambda x, y: torch.nn.functional.rms_norm(x, (7,), eps=0.5) * y,
            "0.5 is added after the square root, not before",
            FORMULA,
            lambda x, y: x / (torch.sqrt((x * x).mean(-1, keepdim=True)) + 0.5) * y,
        ),
        (
            lambda x, y: torch.sqrt(x * x + 0.5) * y,
            "0.5 is added after the square root, not before",
            FORMULA,
            lambda x, y: (x.abs() + 0.5) * y,
        ),
        (
            lambda x, y: torch.where(x > 0, x, y),
            "`where` masks nothing",
            FORMULA,
            lambda x, y: x,
        ),
        (
            lambda x, y: torch.where(x > 0, x, y),
            "`where` masks everything",
            FORMULA,
            lambda x, y: y,
        ),
        (
            lambda x, y: torch.tril(x) + y,
            "the mask of `tril` begins later by one",
            FORMULA,
            lambda x, y: torch.tril(x, 1) + y,
        ),
        (
            lambda x, y: torch.tril(x) + y,
            "the mask of `tril` begins earlier by 2 places",
            FORMULA,
            lambda x, y: torch.tril(x, -2) + y,
        ),
        (
            lambda x, y: torch.relu(x) * y,
            "negative elements keep their magnitude",
            FORMULA,
            lambda x, y: x.abs() * y,
        ),
        (
            lambda x, y: torch.exp(x) * y,
            "`exp` is rounded to bfloat16",
            CauseCode.LOWER_PRECISION,
            lambda x, y: torch.exp(x).bfloat16().double() * y,
        ),
        (
            lambda x, y: softmax(x, -1) * y,
            "`sub` is left out",
            CauseCode.MISSING_MAXIMUM,
            lambda x, y: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True) * y,
        ),
    ],
)
def test_change_is_the_fault_that_its_text_says(
    reference: Reference, text: str, code: CauseCode, faulty: Reference
) -> None:
    assert_changed(changed_outputs(reference, X, Y), text, code, faulty(X, Y))


def test_nan_becomes_0_where_a_comparison_loses_it() -> None:
    x = torch.tensor([[-1.0, math.nan, 2.0]], dtype=torch.float64)
    outputs = changed_outputs(torch.relu, x)
    expected = torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64)
    assert_changed(outputs, "NaN becomes 0", CauseCode.NAN_LOST, expected)


@pytest.mark.parametrize(("block", "more"), [(16, 1), (32, 16)])
def test_rows_of_a_block_may_stop_at_its_first_row(block: int, more: int) -> None:
    x = normal(40, 40)
    row, column = torch.arange(40)[:, None], torch.arange(40)
    visible = (column <= row) & (column < row // block * block + more)
    text = f"rows of a block of {block} stop {more} columns after the block's first row"
    # The mask itself is changed, as in attention: it is a triangle of ones.
    outputs = changed_outputs(lambda x: torch.tril(torch.ones_like(x)) * x, x)
    assert_changed(outputs, text, CauseCode.PARTIAL_EXTENT, visible * x)


def test_rows_of_a_block_may_stop_where_shorter_blocks_end() -> None:
    x = normal(40, 40)
    row, column = torch.arange(40)[:, None], torch.arange(40)
    visible = (column <= row) & (column < (row // 32 + 1) * 16)
    text = "rows of a block of 32 stop where as many blocks of 16 end"
    outputs = changed_outputs(lambda x: torch.tril(torch.ones_like(x)) * x, x)
    assert_changed(outputs, text, CauseCode.PARTIAL_EXTENT, visible * x)


@pytest.mark.parametrize(
    ("text", "amount", "faulty"),
    [
        ("`exp` is {} times as large", 3.0, lambda x: 3 * torch.exp(x)),
        ("{} is added to `exp`", 0.25, lambda x: torch.exp(x) + 0.25),
    ],
)
def test_change_with_a_parameter(text: str, amount: float, faulty: Reference) -> None:
    outputs = changed_outputs(torch.exp, X, amount=amount)
    assert_changed(outputs, text, FORMULA, faulty(X))


def test_leak_of_a_relu_is_a_parameter() -> None:
    outputs = changed_outputs(torch.relu, X, amount=0.01)
    expected = torch.where(X < 0, 0.01 * X, X)
    assert_changed(outputs, "negative elements are multiplied by {}", FORMULA, expected)


def test_operation_that_occurs_twice_has_a_number() -> None:
    outputs = changed_outputs(lambda x: torch.exp(torch.exp(x)), X)
    assert_changed(outputs, "`exp` number 2 is `exp2`", FORMULA, torch.exp2(torch.exp(X)))
    assert "`exp` is `exp2`" not in outputs
