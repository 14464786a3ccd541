"""Sets of inputs: new contents each round, every output checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from tests.worker.harness import CPU
from triton_magics import ops
from triton_magics.worker import oracle
from triton_magics.worker.cases import same_bits
from triton_magics.worker.slots import Slots, case_of, traffic


def inputs(slots: Slots) -> torch.Tensor:
    """The next set's first tensor, with its contents."""
    (call,) = slots.calls(lambda *given: given, 1)
    call.before()
    call.fresh()
    return call.act()[0]


def outputs(slots: Slots, function: Callable[..., torch.Tensor], n: int = 1) -> list[torch.Tensor]:
    """What is kept of the outputs of n calls."""
    kept = []
    for call in slots.calls(lambda x: function(x, -1), n):
        call.before()
        call.fresh()
        kept.append(call.kept(call.act()).clone())
    return kept


def test_slots_never_hand_out_the_same_storage_twice_in_a_row_and_always_the_rounds_contents() -> (
    None
):
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=5)
    seen = []
    for seed in (10, 11):
        slots.refill(seed)
        first, second = inputs(slots), inputs(slots)
        assert first.data_ptr() != second.data_ptr()
        assert same_bits(first, second)
        seen.append(first.clone())
    assert not torch.equal(*seen)


def test_the_answer_of_a_round_is_judged_against_its_own_contents() -> None:
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=3)
    slots.refill(10)
    (old,) = outputs(slots, torch.softmax)
    assert slots.wrong([old]) is None
    slots.refill(11)
    assert slots.wrong([old]) is not None
    (right,) = outputs(slots, torch.softmax)
    assert slots.wrong([right]) is None
    assert slots.wrong([right * (1 + 1e-3)]) is not None
    assert slots.wrong([right, right, right * (1 + 1e-3)]) is not None
    assert "shapes" in str(slots.wrong([right[:, :5]]))
    assert "dtypes" in str(slots.wrong([right.half()]))


def test_an_op_with_a_check_of_its_own_gets_the_output_as_the_version_returned_it() -> None:
    op = ops.load("dropout")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    slots.refill(10)
    for function, wrong in ((op.reference, False), (lambda x, p, seed: 0.9 * x, True)):
        kept = []
        for call in slots.calls(function, 2):
            call.before()
            call.fresh()
            kept.append(call.kept(call.act()))
        assert (slots.wrong(kept) is not None) is wrong


@pytest.mark.parametrize(
    ("off", "right"), [(0.99, True), (1.01, False), (float("nan"), False), (float("inf"), False)]
)
def test_the_quick_check_knows_what_is_allowed(off: float, right: bool) -> None:
    value, allowed = torch.full((5, 7), 3.0, dtype=torch.float64), torch.full((5, 1), 0.5).double()
    got = value.clone()
    got[4, 6] += 0.5 * off
    assert oracle.within(got, value, allowed) is right
    assert oracle.judge(got, value, allowed).right is right


def test_traffic_is_every_tensor_once() -> None:
    op = ops.load("softmax")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    assert traffic(op, slots) == (2 * 256 * 256 * 4, 5 * 256 * 256)


def test_a_call_says_who_is_called() -> None:
    op = ops.load("sum")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    assert [call.of for call in slots.calls(op.reference, 2)] == [op.reference] * 2


@pytest.mark.parametrize(("shape", "n"), [((256, 256), 32), ((2048, 1024), 32), ((2048, 1025), 3)])
def test_there_are_more_sets_where_they_are_small(shape: tuple[int, ...], n: int) -> None:
    op = replace(ops.load("sum"), sizes={"small": shape})
    assert len(Slots(op, case_of(op, "small", "float32", 1), CPU, n=3, small=32)) == n


def test_a_set_is_cleared_whenever_it_is_used_also_twice_in_a_run_or_tried_again() -> None:
    op = ops.load("sum")
    slots = Slots(op, case_of(op, "small", "float32", 1), CPU, n=2)
    for call in slots.calls(torch.clone, 5):
        for _ in range(2):
            call.before()
            assert not call.act().any()
            call.fresh()
            assert call.act().all()
