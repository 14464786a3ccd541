"""Changes of sums and products, each against the fault written by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.harness.change_kit import Reference, assert_changed, changed_outputs, normal, own_op
from triton_magics.harness.correctness.reduction_changes import averages_last
from triton_magics.harness.correctness.reference_trace import trace_reference
from triton_magics.model import CauseCode

X = normal(6, 100)
FORMULA, PART = CauseCode.WRONG_FORMULA, CauseCode.PARTIAL_EXTENT


def sum_rows(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


@pytest.mark.parametrize(
    ("text", "code", "faulty"),
    [
        ("`sum` is `mean`", FORMULA, lambda x: x.mean(-1)),
        ("`sum` is `amax`", FORMULA, lambda x: x.amax(-1)),
        (
            "`sum` goes over all elements, not over each row",
            FORMULA,
            lambda x: x.sum().expand(6),
        ),
        ("`sum` of the first row is used for every row", FORMULA, lambda x: x[0].sum().expand(6)),
        (
            "each 4 rows share one `sum`",
            FORMULA,
            lambda x: torch.cat([x[:4].sum().expand(4), x[4:].sum().expand(2)]),
        ),
        ("`sum` takes the first 0 of 100 elements", PART, lambda x: torch.zeros(6).double()),
        ("`sum` takes the first 96 of 100 elements", PART, lambda x: x[:, :96].sum(-1)),
        ("`sum` takes the first 99 of 100 elements", PART, lambda x: x[:, :99].sum(-1)),
        ("`sum` takes the last 99 of 100 elements", PART, lambda x: x[:, 1:].sum(-1)),
        ("`sum` takes the last 4 of 100 elements", PART, lambda x: x[:, 96:].sum(-1)),
        (
            "`sum` takes one of 2 blocks of 32 elements",
            PART,
            lambda x: x[:, :32].sum(-1) + x[:, 64:96].sum(-1),
        ),
    ],
)
def test_change_of_a_sum(text: str, code: CauseCode, faulty: Reference) -> None:
    assert_changed(changed_outputs(sum_rows, X), text, code, faulty(X))


def test_part_of_a_mean_is_divided_by_all_elements() -> None:
    outputs = changed_outputs(lambda x: x.mean(-1), X)
    expected = X[:, :96].sum(-1) / 100
    assert_changed(outputs, "`mean` takes the first 96 of 100 elements", PART, expected)


@pytest.mark.parametrize(
    ("words", "divisor"),
    [
        ("one less than the number of elements", 99),
        ("one more than the number of elements", 101),
        ("the length of a block that holds the elements", 128),
        ("the number of rows", 6),
        ("the length of its blocks of 64", 128),
        ("the length of its blocks of 512", 512),
    ],
)
def test_mean_may_be_divided_by_another_length(words: str, divisor: int) -> None:
    outputs = changed_outputs(lambda x: x.mean(-1), X)
    assert_changed(outputs, f"`mean` divides by {words}", FORMULA, X.sum(-1) / divisor)


def test_maximum_may_take_a_fill_of_0_in() -> None:
    outputs = changed_outputs(lambda x: x.amax(-1), X - 10)
    expected = torch.zeros(6).double()
    assert_changed(outputs, "`amax` takes a 0 in", CauseCode.WRONG_FILL, expected)


@pytest.mark.parametrize("lanes", [28, 12])  # past 100, of one block of 128 and of blocks of 16
def test_lanes_past_the_end_are_as_far_from_the_mean_as_0(lanes: int) -> None:
    outputs = changed_outputs(lambda x: functional.layer_norm(x, (100,), eps=0.0), X + 3)
    mean = (X + 3).mean(-1, keepdim=True)
    square = ((X + 3 - mean) ** 2).sum(-1, keepdim=True) + lanes * mean**2
    text = f"`sum` takes {lanes} lanes past the end in, each as far from the mean as 0"
    expected = (X + 3 - mean) * torch.rsqrt(square / 100)
    assert_changed(outputs, text, CauseCode.MISSING_MASK, expected)


A, B = normal(4, 100), normal(100, 4, seed=2)


@pytest.mark.parametrize(
    ("text", "code", "faulty"),
    [
        ("`mm` takes the first 96 of 100 elements of each sum", PART, lambda: A[:, :96] @ B[:96]),
        (
            "operand 2 of `mm` stays at its first 32 terms",
            FORMULA,
            lambda: A @ B[torch.arange(100) % 32],
        ),
        (
            "the operands of `mm` are rounded to float16",
            CauseCode.LOWER_PRECISION,
            lambda: A.half().double() @ B.half().double(),
        ),
    ],
)
def test_change_of_a_product(text: str, code: CauseCode, faulty: Reference) -> None:
    assert_changed(changed_outputs(torch.mm, A, B), text, code, faulty())


def test_square_operand_may_be_transposed() -> None:
    a, b = normal(4, 9), normal(9, 9, seed=2)
    outputs = changed_outputs(torch.mm, a, b)
    text = "`mm` has its second operand transposed"
    assert_changed(outputs, text, CauseCode.WRONG_STRIDE, a @ b.T)


def test_sum_may_not_be_rescaled_at_a_new_maximum() -> None:
    x = normal(3, 64)
    outputs = changed_outputs(lambda x: torch.softmax(x, -1), x)
    blocks = x.reshape(3, 4, 16)
    running = blocks.amax(-1).cummax(-1).values[..., None]
    total = torch.exp(blocks - running).sum((-1, -2))[:, None]
    expected = torch.exp(x - x.amax(-1, keepdim=True)) / total
    text = "the sum is not rescaled where the maximum of a block of 16 is a new one"
    assert_changed(outputs, text, CauseCode.MISSING_MAXIMUM, expected)


def test_short_sums_have_few_parts() -> None:
    outputs = changed_outputs(sum_rows, normal(6, 4))
    parts = {text.removeprefix("`sum` takes ") for text in outputs if "takes the" in text}
    ends = ("first 0", "first 3", "last 3")
    assert parts == {f"the {end} of 4 elements" for end in ends}


def test_mean_over_rows_is_no_mean_of_the_last_dimension() -> None:
    last, rows = (
        [averages_last(o) for o in trace_reference(own_op(reference), (X,))]
        for reference in (lambda x: x.mean(-1), lambda x: x.mean(0))
    )
    assert (last, rows) == ([True], [False])
