"""Changes of a formula: operators, signs, order and operands, against the fault by hand."""

from __future__ import annotations

import pytest
import torch

from tests.harness.change_kit import Reference, assert_changed, changed_outputs, normal
from triton_magics.model import CauseCode

X, Y = normal(5, 7), normal(5, 7, seed=2)
ALPHA = 0.3


def axpy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y * ALPHA


@pytest.mark.parametrize(
    ("reference", "text", "faulty"),
    [
        (axpy, "`mul` is `add`", lambda x, y: x + y + ALPHA),
        (axpy, "`mul` is `div`", lambda x, y: x + y / ALPHA),
        (axpy, "`add` is `mul`", lambda x, y: x * y * ALPHA),
        (axpy, "`add` is `add` on operand 1 of `mul`", lambda x, y: (x + y) * ALPHA),
        (axpy, "`add` is `add` on operand 2 of `mul`", lambda x, y: y * (x + ALPHA)),
        (axpy, "operand 1 of `add` has lost its sign", lambda x, y: x.abs() + y * ALPHA),
        (axpy, "operand 2 of `add` has lost its sign", lambda x, y: x + (y * ALPHA).abs()),
        (axpy, "operand 1 of `mul` has lost its sign", lambda x, y: x + y.abs() * ALPHA),
        (
            lambda x, y: (x * x).sum(-1, keepdim=True) * y,
            "`mul` number 1 is the magnitude, not the square",
            lambda x, y: x.abs().sum(-1, keepdim=True) * y,
        ),
        (
            lambda x, y: (x**2).mean(-1, keepdim=True) * y,
            "`pow` is the magnitude, not the square",
            lambda x, y: x.abs().mean(-1, keepdim=True) * y,
        ),
        (
            lambda x, y: torch.exp(x) * torch.sin(y),
            "operand 2 of `mul` is the result of `exp`",
            lambda x, y: torch.exp(x) * torch.exp(x),
        ),
        (
            lambda x, y: torch.add(x, y, alpha=ALPHA),
            "`mul` is `add`",
            lambda x, y: x + y + ALPHA,
        ),
    ],
)
def test_change_is_the_fault_that_its_text_says(
    reference: Reference, text: str, faulty: Reference
) -> None:
    outputs = changed_outputs(reference, X, Y)
    assert_changed(outputs, text, CauseCode.WRONG_FORMULA, faulty(X, Y))


@pytest.mark.parametrize(
    ("text", "faulty"),
    [
        ("operand 1 of `add` is squared", lambda x, y: x * x + y * ALPHA),
        ("operand 1 of `mul` is 1", lambda x, y: x + ALPHA),
        ("operand 2 of `add` is added to the result", lambda x, y: x + 2 * (y * ALPHA)),
        ("`add` is squared", lambda x, y: (x + y * ALPHA) ** 2),
        ("`add` is `mul` on operand 2 of `mul`", lambda x, y: y * (x * ALPHA)),
        ("`add` is `sub` on operand 1 of `mul`", lambda x, y: (x - y) * ALPHA),
    ],
)
def test_squares_and_groups(text: str, faulty: Reference) -> None:
    assert_changed(changed_outputs(axpy, X, Y), text, CauseCode.WRONG_FORMULA, faulty(X, Y))


def test_vector_may_be_indexed_by_the_row() -> None:
    bias = normal(7, seed=3)
    outputs = changed_outputs(lambda x, bias: x + bias, X, bias)
    text = "operand 2 of `add` is indexed by the row, not the column"
    assert_changed(outputs, text, CauseCode.WRONG_STRIDE, X + bias[:5, None])


def test_one_use_of_a_result_may_be_wrong() -> None:
    """A kernel computes the exponentials for the sum, and again for the output."""
    outputs = changed_outputs(lambda x: torch.softmax(x, -1), X)
    shifted = X - X.amax(-1, keepdim=True)
    text = "operand 1 of `exp` is taken before `sub`, as operand 1 of `div`"
    expected = torch.exp(X) / torch.exp(shifted).sum(-1, keepdim=True)
    assert_changed(outputs, text, CauseCode.MISSING_MAXIMUM, expected)
    text = "`exp` is `exp2`, as operand 1 of `sum`"
    expected = torch.exp(shifted) / torch.exp2(shifted).sum(-1, keepdim=True)
    assert_changed(outputs, text, CauseCode.WRONG_FORMULA, expected)


def test_positive_operands_have_no_sign_to_lose() -> None:
    outputs = changed_outputs(axpy, X.abs(), Y.abs())
    assert not [text for text in outputs if "lost its sign" in text]


@pytest.mark.parametrize(
    ("text", "code", "faulty"),
    [
        ("`sub` number 3 is left out", CauseCode.WRONG_FORMULA, lambda lse, x: lse),
        ("`sub` number 3 is `add`", CauseCode.WRONG_FORMULA, lambda lse, x: lse + x),
        ("`add` is left out", CauseCode.WRONG_FORMULA, None),
    ],
)
def test_loss_is_a_log_sum_less_one_logit(
    text: str, code: CauseCode, faulty: Reference | None
) -> None:
    target = torch.tensor([1, 0, 6, 2, 3])
    outputs = changed_outputs(torch.nn.functional.cross_entropy, X, target)
    log_sum, picked = torch.logsumexp(X, -1), X.gather(1, target[:, None])[:, 0]
    losses = faulty(log_sum, picked) if faulty else log_sum - X.amax(-1) - picked
    assert_changed(outputs, text, code, losses.mean())
