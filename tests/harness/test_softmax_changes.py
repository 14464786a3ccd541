"""Changes of a softmax, each against the fault written by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from tests.harness.change_kit import assert_changed, changed_outputs, normal
from triton_magics.model import CauseCode

X = normal(6, 100) * 4
KEPT = torch.ones(6, 6).bool().tril()
Q, K, V = (normal(6, 8, seed=seed) for seed in (1, 2, 3))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def test_a_block_is_rescaled_to_the_maximum_so_far_only() -> None:
    total, top = torch.zeros(6).double(), torch.full((6,), -math.inf).double()
    for block in X.split(64, -1):
        own = block.amax(-1)
        new = torch.maximum(top, own)
        total = total * torch.exp(top - new) + torch.exp(block - own[:, None]).sum(-1)
        top = new
    expected = torch.exp(X - top[:, None]) / total[:, None]
    outputs = changed_outputs(softmax, X)
    text = "the sum of each block of 64 is rescaled to the maximum so far only"
    assert_changed(outputs, text, CauseCode.MISSING_MAXIMUM, expected)


def test_a_block_is_rescaled_along_with_those_before_it() -> None:
    total, top = torch.zeros(6).double(), torch.full((6,), -math.inf).double()
    for block in X.split(64, -1):
        new = torch.maximum(top, block.amax(-1))
        total = (total + torch.exp(block - new[:, None]).sum(-1)) * torch.exp(top - new)
        top = new
    expected = torch.exp(X - top[:, None]) / total[:, None]
    outputs = changed_outputs(softmax, X)
    text = "the sum of each block of 64 is rescaled along with the blocks before it"
    assert_changed(outputs, text, CauseCode.MISSING_MAXIMUM, expected)


def test_no_block_is_rescaled() -> None:
    sums = [torch.exp(b - b.amax(-1, keepdim=True)).sum(-1) for b in X.split(32, -1)]
    top = X.amax(-1, keepdim=True)
    expected = torch.exp(X - top) / torch.stack(sums).sum(0)[:, None]
    text = "the sum of each block of 32 is rescaled to no maximum"
    assert_changed(changed_outputs(softmax, X), text, CauseCode.MISSING_MAXIMUM, expected)


@pytest.mark.parametrize("lanes", [28, 12])
@pytest.mark.parametrize("shift", [0.0, -9.0])
def test_lanes_of_score_0_take_part(lanes: int, shift: float) -> None:
    outputs = changed_outputs(softmax, X + shift)
    text = f"{lanes} lanes of score 0 past the end of each row take part"
    padded = functional.pad(X + shift, (0, lanes))
    assert_changed(outputs, text, CauseCode.WRONG_FILL, softmax(padded)[:, :100])


def test_the_softmax_of_a_part_leaves_the_others_as_they_are() -> None:
    expected = torch.cat([softmax(X[:, :64]), X[:, 64:]], -1)
    text = "the softmax takes the first 64 of 100 elements, and the others stay as they are"
    assert_changed(changed_outputs(softmax, X), text, CauseCode.PARTIAL_EXTENT, expected)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)


def weigh(visible: torch.Tensor, *, fill: float = -math.inf, lanes: int = 0) -> torch.Tensor:
    scores = torch.where(visible, Q @ K.T * 8**-0.5, fill)
    return (softmax(functional.pad(scores, (0, lanes)))[:, :6] @ V)[None]


def test_attention_is_changed_as_a_kernel_computes_it() -> None:
    outputs = changed_outputs(attention, Q, K, V)
    scores = torch.where(KEPT, Q @ K.T / 8**-0.5, -math.inf)
    assert_changed(outputs, "`mul` is `div`", CauseCode.WRONG_FORMULA, (softmax(scores) @ V)[None])
    assert not any(text.startswith("`mul` number") for text in outputs)


def test_masked_scores_are_0_and_lanes_past_the_end() -> None:
    expected = weigh(KEPT, fill=0.0, lanes=10)
    outputs = changed_outputs(attention, Q, K, V)
    text = "what is masked has the score 0, and 10 lanes past the end of each row"
    assert_changed(outputs, text, CauseCode.WRONG_FILL, expected)


ROW, COLUMN = torch.arange(6)[:, None], torch.arange(6)


@pytest.mark.parametrize(
    ("words", "visible"),
    [
        ("the columns from the row on", COLUMN >= ROW),
        ("the row halved", COLUMN <= ROW // 2),
        ("the column halved", COLUMN // 2 <= ROW),
    ],
)
def test_a_mask_may_compare_other_indices(words: str, visible: torch.Tensor) -> None:
    outputs = changed_outputs(attention, Q, K, V)
    assert_changed(outputs, f"`tril` has {words}", CauseCode.WRONG_FORMULA, weigh(visible))
