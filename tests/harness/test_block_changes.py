"""Changes that stand for a wrong join of blocks, each against the fault written by hand."""

from __future__ import annotations

import torch
from torch.nn import functional

from tests.harness.change_kit import assert_changed, changed_outputs, normal, own_op
from triton_magics.harness.correctness.block_changes import changes_of_blocks
from triton_magics.harness.correctness.reference_trace import trace_reference
from triton_magics.model import CauseCode

X = normal(6, 100)
FORMULA = CauseCode.WRONG_FORMULA


def test_mean_may_be_the_plain_average_of_its_blocks() -> None:
    outputs = changed_outputs(lambda x: x.mean(-1), X)
    expected = (X[:, :64].mean(-1) + X[:, 64:].mean(-1)) / 2
    text = "`mean` is the plain average of those of blocks of 64, of which the last may be shorter"
    assert_changed(outputs, text, FORMULA, expected)


def test_equal_blocks_have_the_right_average() -> None:
    x = normal(6, 128)
    outputs = changed_outputs(lambda x: x.mean(-1), x)
    text = "`mean` is the plain average of those of blocks of 64, of which the last may be shorter"
    assert_changed(outputs, text, FORMULA, x.mean(-1))


def test_spread_between_blocks_may_be_left_out() -> None:
    x = X + torch.linspace(0, 5, 100).double()
    outputs = changed_outputs(lambda x: functional.layer_norm(x, (100,), eps=0.0), x)
    within = torch.cat([p - p.mean(-1, keepdim=True) for p in x.split(32, -1)], -1)
    square = within.square().sum(-1, keepdim=True)
    expected = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(square / 100)
    text = "the spread between blocks of 32 is left out of `sum`"
    assert_changed(outputs, text, FORMULA, expected)


def test_pick_may_count_in_the_last_block_alone() -> None:
    index = torch.tensor([0, 95, 96, 99, 31, 64])
    (operation,) = trace_reference(own_op(lambda x: x.gather(1, index[:, None])[:, 0]), (X,))
    picked = X[torch.arange(6), index]
    outputs = [apply(operation)[:, 0].tolist() for _, _, apply in changes_of_blocks(operation)]
    for start in (0, 64, 96, 80):  # one block; the last of 64, of 32, of 16 after five
        expected = torch.where(index >= start, picked, 0.0)
        assert (expected.tolist() in outputs) is (start != 80)


def test_factor_or_term_may_come_in_each_step_of_a_product() -> None:
    a, b, other = normal(4, 100), normal(100, 3, seed=2), normal(3, seed=3)
    first, last = a[:, :64] @ b[:64], a[:, 64:] @ b[64:]
    outputs = changed_outputs(lambda a, b, s: (a @ b) * s, a, b, other)
    text = "`mul` is done after each 64 terms of `mm`, not after all"
    assert_changed(outputs, text, FORMULA, (first * other + last) * other)
    outputs = changed_outputs(lambda a, b, s: (a @ b) + s, a, b, other)
    text = "`add` is done after each 64 terms of `mm`, not after all"
    assert_changed(outputs, text, FORMULA, first + last + 2 * other)
    outputs = changed_outputs(lambda a, b, s: (a @ b) * s * 2, a, b, other)
    text = "each `mul` up to `mul` number 2 is done after each 64 terms of `mm`, not after all"
    assert_changed(outputs, text, FORMULA, (first * other * 2 + last) * other * 2)
