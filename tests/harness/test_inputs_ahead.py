"""Inputs of the next case, made while the version's process works."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.inputs_ahead import InputsAhead
from triton_magics.harness.load import UserFault
from triton_magics.harness.process.device import CPU
from triton_magics.model import Case

CASE = Case(shape=(7, 13), dtype="float32", seed=3)


def draw(case: Case) -> tuple[Any, ...]:
    """Return the inputs of a softmax."""
    return make_pristine(operators.load("softmax"), case, CPU)


def ahead() -> tuple[InputsAhead, list[Case]]:
    """Return inputs ahead of softmax, and the cases for which inputs were made."""
    cases: list[Case] = []

    def make(case: Case) -> tuple[Any, ...]:
        cases.append(case)
        return draw(case)

    return InputsAhead(make), cases


def test_inputs_made_ahead_are_those_of_the_case() -> None:
    inputs, cases = ahead()
    inputs.next_case = CASE
    inputs.prepare()
    (x,) = inputs.take(CASE)
    (own,) = draw(CASE)
    assert torch.equal(x, own)
    assert cases == [CASE]


def test_another_case_and_a_second_call_get_new_inputs() -> None:
    inputs, cases = ahead()
    inputs.next_case = CASE
    inputs.prepare()
    other = CASE.evolve(seed=4)
    (x,) = inputs.take(other)
    assert torch.equal(x, draw(other)[0])
    inputs.take(CASE)
    assert cases == [CASE, other]  # those made ahead are still there, for once
    inputs.take(CASE)
    assert cases == [CASE, other, CASE]


def test_large_inputs_are_not_made_ahead() -> None:
    inputs, cases = ahead()
    inputs.next_case = CASE.evolve(shape=(2**11, 2**11 + 1))
    inputs.prepare()
    assert cases == []


def test_a_failure_is_raised_where_the_inputs_are_needed() -> None:
    inputs = InputsAhead(draw)
    inputs.next_case = bad = CASE.evolve(shape=(7, -13))
    inputs.prepare()
    with pytest.raises(UserFault, match="make_inputs failed"):
        inputs.take(bad)
