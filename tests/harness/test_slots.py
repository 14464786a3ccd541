"""The input pool: new contents each round, every output checked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal
from triton_magics.harness.correctness.judgement import is_within, judge
from triton_magics.harness.timers.gated_timer import TimedCall
from triton_magics.harness.timing.input_pool import InputPool, timing_case, traffic
from triton_magics.model import NotTimedCode


def inputs(input_pool: InputPool) -> torch.Tensor:
    """Return the first tensor of the next set, with its contents."""
    (call,) = input_pool.make_calls(lambda *tensors: tensors, 1)
    call.before_gate()
    call.fill_inputs()
    return call.function()[0]


def outputs(
    input_pool: InputPool, function: Callable[..., Any], n: int = 1
) -> tuple[list[Any], list[TimedCall]]:
    """Return the copies of the outputs of n calls, and the calls."""
    copies, calls = [], input_pool.make_calls(function, n)
    for call in calls:
        call.before_gate()
        call.fill_inputs()
        copies.append(call.copy_output(call.function()))
    return [copy.clone() for copy in copies], calls


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def pool_of(name: str, n: int = 8) -> InputPool:
    op = operators.load(name)
    return InputPool(op, timing_case(op, "small", "float32", 1), CPU, n=n)


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
    input_pool = pool_of("softmax")
    input_pool.refill(10)
    (old,), calls = outputs(input_pool, softmax)
    assert input_pool.check_outputs([old], calls) is None
    input_pool.refill(11)
    (right,), calls = outputs(input_pool, softmax)
    assert input_pool.check_outputs([right], calls) is None
    assert input_pool.check_outputs([old], calls) is not None
    assert input_pool.check_outputs([right * (1 + 1e-3)], calls) is not None
    assert "shapes" in str(input_pool.check_outputs([right[:, :5]], calls))
    assert "dtypes" in str(input_pool.check_outputs([right.half()], calls))


def test_every_output_of_a_run_is_checked() -> None:
    input_pool = pool_of("softmax")
    input_pool.refill(10, calls=9)
    right, calls = outputs(input_pool, softmax, 9)
    assert input_pool.check_outputs(right, calls) is None
    for i in range(9):
        wrong = [x * (1 + 1e-3 * (i == j)) for j, x in enumerate(right)]
        fault = input_pool.check_outputs(wrong, calls)
        assert fault is not None
        assert fault.code is NotTimedCode.WRONG_OUTPUT


def test_calls_of_a_run_have_three_contents_two_of_them_alike() -> None:
    input_pool = pool_of("softmax")
    input_pool.refill(10, calls=9)
    (before,), _ = outputs(input_pool, torch.clone)
    input_pool.refill(11, calls=9)
    copies, calls = outputs(input_pool, torch.clone, 9)
    assert all(a.content != b.content for a, b in itertools.pairwise(calls))
    contents = dict(zip([call.content for call in calls], copies, strict=True))
    assert len(contents) == 3
    differing = sorted(int((a != b).sum()) for a, b in itertools.combinations(contents.values(), 2))
    assert differing[0] in (1, 2)
    assert min(differing[1:]) > before.numel() - 100


def test_single_calls_differ_in_little_in_every_second_round() -> None:
    input_pool, last, numbers = pool_of("softmax"), torch.zeros(()), []
    for seed in range(6):
        input_pool.refill(seed)
        (now,), (call,) = outputs(input_pool, torch.clone)
        numbers.append(int((now != last).sum()))
        last = now
        assert input_pool.check_outputs([torch.softmax(now, -1)], [call]) is None
    assert sum(n in (1, 2) for n in numbers) == 3
    assert sum(n > last.numel() - 100 for n in numbers) == 3


def test_the_answer_for_other_contents_is_a_cached_one() -> None:
    input_pool = pool_of("softmax")
    for seed, n in ((10, 9), (11, 9), (12, 2)):
        input_pool.refill(seed, calls=n)
        right, calls = outputs(input_pool, softmax, n)
        first = [right[0]] * n  # as a version gives a run's first answer again
        fault = input_pool.check_outputs(first, calls)
        assert fault is not None
        assert fault.code is NotTimedCode.CACHED


def test_custom_check_gets_the_unchanged_output() -> None:
    input_pool = pool_of("dropout")
    input_pool.refill(10)
    reference = operators.load("dropout").reference
    for function, wrong in ((reference, False), (lambda x, p, seed: 0.9 * x, True)):
        copies, calls = outputs(input_pool, function, 2)
        assert (input_pool.check_outputs(copies, calls) is not None) is wrong


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
