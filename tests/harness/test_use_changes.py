"""Changes of inputs, of picks and of places, each against the fault written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from torch.nn import functional

from tests.harness.change_kit import assert_changed, changed_outputs, normal, own_op
from triton_magics.harness.correctness.input_changes import changes_of_inputs
from triton_magics.harness.correctness.place_changes import changes_of_outputs
from triton_magics.harness.correctness.reference_changes import Change
from triton_magics.harness.correctness.reference_trace import evaluate_changed, trace_reference
from triton_magics.harness.correctness.use_changes import changes_of_input_uses
from triton_magics.model import CauseCode

X, Y = normal(6, 8), normal(6, 8, seed=2)
PLACE, FORMULA = CauseCode.WRONG_STRIDE, CauseCode.WRONG_FORMULA
Reference = Callable[..., torch.Tensor]


def outputs_of(
    changes: Iterable[Change], reference: Reference, *inputs: torch.Tensor
) -> dict[str, tuple[CauseCode, torch.Tensor]]:
    """Return by text the code and the output of each change."""
    op, outputs = own_op(reference), {}
    for change in changes:
        own = change.inputs(inputs, 0.0) if change.inputs else inputs
        (output,) = evaluate_changed(op, own, change.at, change.operation(0.0))
        output = change.outputs(output) if change.outputs else output
        outputs[change.text] = (change.code, output)
    return outputs


def share(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x / (x * x).sum(-1, keepdim=True) + y


def test_an_input_is_read_elsewhere_in_one_of_its_uses() -> None:
    operations = trace_reference(own_op(share), (X, Y))
    outputs = outputs_of(changes_of_input_uses(operations, (X, Y), ("x", "y")), share, X, Y)
    text = "index 0 of dimension 0 of x is read for every index, as operand 1 of `div`"
    square = (X * X).sum(-1, keepdim=True)
    assert_changed(outputs, text, PLACE, X[:1] / square + Y)
    text = "y is read in place of x, as operand 2 of `mul`"
    assert_changed(outputs, text, FORMULA, X / (X * Y).sum(-1, keepdim=True) + Y)
    assert not any("`add`" in text for text in outputs)  # y is used once


def pick(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return x.gather(1, target[:, None]).reshape(-1)


@pytest.mark.parametrize(
    ("words", "code", "places"),
    [
        ("the first element of each row", PLACE, [0] * 6),
        ("the element after the right one", CauseCode.REACH, [8, 1, 4, 2, 7, 3]),
        ("the element of the row's own number", FORMULA, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_pick_takes_another_element(words: str, code: CauseCode, places: list[int]) -> None:
    target = torch.tensor([7, 0, 3, 1, 6, 2])
    outputs = changed_outputs(pick, X, target)
    expected = torch.cat([X, torch.zeros(6, 1)], 1)[torch.arange(6), places]
    assert_changed(outputs, f"`gather` takes {words}", code, expected)


def test_integers_are_read_as_unsigned() -> None:
    weight = torch.tensor([[-128, -1, 0, 127]], dtype=torch.int8)

    def scale(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x * w

    changes = changes_of_inputs((X[:, :4], weight), ("x", "w"), {})
    own = (c for c in changes if c.text.startswith("w ") and "dimension" not in c.text)
    outputs = outputs_of(own, scale, X[:, :4], weight)
    halves = X[:, :4] * torch.tensor([[-64, 0, 0, 63]])
    assert_changed(outputs, "w is half", FORMULA, halves)
    expected = X[:, :4] * torch.tensor([[128, 255, 0, 127]])
    assert_changed(outputs, "w is read as unsigned", FORMULA, expected)
    expected = X[:, :4] * torch.tensor([[128, 1, 0, 127]])
    assert_changed(outputs, "w has lost its sign", FORMULA, expected)


def turn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    c, d = y.chunk(2, -1)
    return torch.cat([a * c - b * d, b * c + a * d], -1)


def test_the_terms_of_a_sum_exchange_a_factor() -> None:
    outputs = changed_outputs(turn, X, Y)
    (a, b), (c, d) = X.chunk(2, -1), Y.chunk(2, -1)
    text = "the terms of `add` have exchanged their second factors"
    assert_changed(outputs, text, FORMULA, torch.cat([a * c - b * d, b * d + a * c], -1))


def test_halves_of_a_row_are_read_as_pairs_and_one_place_off() -> None:
    changes = [c for c in changes_of_inputs((X, Y), ("x", "y"), {}) if "row of x" in c.text]
    outputs = outputs_of(changes, turn, X, Y)
    pairs = torch.cat([X[:, 0::2], X[:, 1::2]], -1)
    text = "each row of x is read with pairs of neighbours taken for its halves"
    assert_changed(outputs, text, PLACE, turn(pairs, Y))
    text = "the second half of each row of x is read one place off (earlier)"
    assert_changed(outputs, text, PLACE, turn(torch.cat([X[:, :4], X[:, 3:7]], -1), Y))
    whole = outputs_of(changes_of_outputs(X, (X, Y)), turn, X, Y)
    halves = turn(pairs, Y)
    text = "pairs of neighbours in each row are taken for its halves"
    expected = torch.stack(halves.chunk(2, -1), -1).flatten(-2)
    assert_changed(whole, text, FORMULA, expected)


def test_the_first_of_several_leading_dimensions_is_read_for_all() -> None:
    x = normal(2, 3, 4, 5)
    changes = (c for c in changes_of_inputs((x,), ("x",), {}) if "leading" in c.text)
    outputs = outputs_of(changes, functional.relu, x)
    text = "the first of the leading 2 dimensions of x is read for every one"
    assert_changed(outputs, text, PLACE, x[:1, :1].expand_as(x).relu())
