"""The input pool: new contents each round, every output checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal
from triton_magics.harness.correctness.judgement import is_within, judge
from triton_magics.harness.timing.input_pool import InputPool, timing_case, traffic


def inputs(input_pool: InputPool) -> torch.Tensor:
    """Return the first tensor of the next set, with its contents."""
    (call,) = input_pool.make_calls(lambda *tensors: tensors, 1)
    call.before_gate()
    call.fill_inputs()
    return call.function()[0]


def outputs(
    input_pool: InputPool, function: Callable[..., torch.Tensor], n: int = 1
) -> list[torch.Tensor]:
    """Return the copies of the outputs of n calls."""
    copies = []
    for call in input_pool.make_calls(lambda x: function(x, -1), n):
        call.before_gate()
        call.fill_inputs()
        copies.append(call.copy_output(call.function()).clone())
    return copies


def test_consecutive_calls_get_new_storage_with_equal_data() -> None:
    op = operators.load("softmax")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=5)
    contents = []
    for seed in (10, 11):
        input_pool.refill(seed)
        first, second = inputs(input_pool), inputs(input_pool)
        assert first.data_ptr() != second.data_ptr()
        assert is_bitwise_equal(first, second)
        contents.append(first.clone())
    assert not torch.equal(*contents)


def test_outputs_are_checked_against_their_rounds_contents() -> None:
    op = operators.load("softmax")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=3)
    input_pool.refill(10)
    (old,) = outputs(input_pool, torch.softmax)
    assert input_pool.check_outputs([old]) is None
    input_pool.refill(11)
    assert input_pool.check_outputs([old]) is not None
    (right,) = outputs(input_pool, torch.softmax)
    assert input_pool.check_outputs([right]) is None
    assert input_pool.check_outputs([right * (1 + 1e-3)]) is not None
    assert input_pool.check_outputs([right, right, right * (1 + 1e-3)]) is not None
    assert "shapes" in str(input_pool.check_outputs([right[:, :5]]))
    assert "dtypes" in str(input_pool.check_outputs([right.half()]))


def test_custom_check_gets_the_unchanged_output() -> None:
    op = operators.load("dropout")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=2)
    input_pool.refill(10)
    for function, wrong in ((op.reference, False), (lambda x, p, seed: 0.9 * x, True)):
        copies = []
        for call in input_pool.make_calls(function, 2):
            call.before_gate()
            call.fill_inputs()
            copies.append(call.copy_output(call.function()))
        assert (input_pool.check_outputs(copies) is not None) is wrong


@pytest.mark.parametrize(
    ("off", "right"), [(0.99, True), (1.01, False), (float("nan"), False), (float("inf"), False)]
)
def test_quick_check_agrees_with_the_oracle(off: float, right: bool) -> None:
    value, allowed = torch.full((5, 7), 3.0, dtype=torch.float64), torch.full((5, 1), 0.5).double()
    got = value.clone()
    got[4, 6] += 0.5 * off
    assert is_within(got, value, allowed) is right
    assert judge(got, value, allowed).is_correct is right


def test_traffic_counts_every_tensor_once() -> None:
    op = operators.load("softmax")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=2)
    assert traffic(op, input_pool) == (2 * 256 * 256 * 4, 5 * 256 * 256)


def test_gate_key_is_the_called_function() -> None:
    op = operators.load("sum")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=2)
    assert [call.gate_key for call in input_pool.make_calls(op.reference, 2)] == [op.reference] * 2


@pytest.mark.parametrize(("shape", "n"), [((256, 256), 32), ((2048, 1024), 32), ((2048, 1025), 3)])
def test_small_inputs_get_more_sets(shape: tuple[int, ...], n: int) -> None:
    op = replace(operators.load("sum"), sizes={"small": shape})
    assert len(InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=3, small=32)) == n


def test_set_is_cleared_before_every_use() -> None:
    op = operators.load("sum")
    input_pool = InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=2)
    for call in input_pool.make_calls(torch.clone, 5):
        for _ in range(2):
            call.before_gate()
            assert not call.function().any()
            call.fill_inputs()
            assert call.function().all()
