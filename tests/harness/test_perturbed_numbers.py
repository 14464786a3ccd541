"""Perturbed arithmetic against numbers worked by hand: signs, units, formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness.correctness import oracle, tolerance
from triton_magics.harness.correctness.perturbed_arithmetic import (
    FORMULAS,
    PerturbedArithmetic,
    RandomSigns,
)
from triton_magics.model import Case

UNIT = torch.finfo(torch.float32).eps


def doubles(*rows: Any) -> torch.Tensor:
    return torch.tensor(rows if len(rows) > 1 else rows[0], dtype=torch.float64)


def test_perturbations_move_by_one_unit() -> None:
    x, unit = doubles([1.0, -2.0]), 0.125
    signs = RandomSigns(2)
    assert tolerance.perturb_inputs((x, 7), 0, unit, signs)[0].tolist() == [1.125, -2.25]
    assert tolerance.perturb_inputs((x, 7), 1, unit, signs)[0].tolist() == [1.125, -1.75]
    ones = torch.ones(64, dtype=torch.float64)
    moved, other = tolerance.perturb_inputs((ones, 7), 2, unit, signs)
    assert set(moved.tolist()) == {0.875, 1.125}
    assert other == 7


def test_random_signs_are_both_and_the_same_again() -> None:
    first = RandomSigns(5).draw(torch.Size([64]), CPU)
    assert set(first.tolist()) == {-1.0, 1.0}
    assert first.dtype is torch.float64
    again = RandomSigns(5)
    assert torch.equal(again.draw(torch.Size([64]), CPU), first)
    assert not torch.equal(again.draw(torch.Size([64]), CPU), first)
    assert not torch.equal(RandomSigns(6).draw(torch.Size([64]), CPU), first)


@pytest.mark.parametrize("coherent", [True, False])
def test_every_result_moves_by_the_unit(coherent: bool) -> None:
    x = torch.ones(64, dtype=torch.float64)
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=coherent):
        moved = x * 1.0
    assert set(moved.tolist()) <= {0.875, 1.125}
    assert (len(set(moved.tolist())) == 1) is coherent


def test_results_below_the_smallest_number_become_zero() -> None:
    x = doubles([2e-38, 1e-38, -1e-38, 0.0, math.inf, math.nan])
    with PerturbedArithmetic(0.0, RandomSigns(3), coherent=True, flush_below=1.2e-38):
        flushed = x * 1.0
    assert flushed.tolist() == pytest.approx([2e-38, 0, 0, 0, math.inf, math.nan], nan_ok=True)


def test_views_integers_and_float8_are_not_moved() -> None:
    x = torch.ones(4, 2, dtype=torch.float64)
    small = torch.ones(4, dtype=torch.float32)
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=True):
        view, whole = x.t(), torch.tensor([2]) + 1
        eight = small.to(torch.float8_e4m3fn)
    assert torch.equal(view, torch.ones(2, 4, dtype=torch.float64))
    assert whole.tolist() == [3]
    assert set(eight.float().tolist()) == {1.0}


def test_each_of_several_results_moves() -> None:
    x = doubles([[4.0, 1.0], [2.0, 3.0]])
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=True):
        values, places = torch.sort(x, -1)
    assert set((values / doubles([[1.0, 4.0], [2.0, 3.0]])).flatten().tolist()) <= {0.875, 1.125}
    assert places.tolist() == [[1, 0], [0, 1]]


def test_log_softmax_is_evaluated_by_its_formula() -> None:
    formula = FORMULAS[torch.ops.aten._log_softmax.default]
    x = doubles([[1.0, 2.0], [3.0, 5.0]])
    assert torch.allclose(formula(x, -1), torch.log_softmax(x, -1))
    assert torch.allclose(formula(x, 0, False), torch.log_softmax(x, 0))


def test_formula_that_does_not_apply_leaves_the_function() -> None:
    x = torch.ones(8, dtype=torch.float64)

    def refuses(*_args: Any, **_kwargs: Any) -> Any:
        raise NotImplementedError

    mode = PerturbedArithmetic(0.125, RandomSigns(3), coherent=True)
    func = torch.ops.aten.exp.default
    assert mode._expand(func, refuses, (x,), {}) is NotImplemented
    assert not mode._expanded
    ratio = float(mode._expand(func, torch.exp, (x,), {})[0]) / math.e
    assert min(abs(ratio - 0.875), abs(ratio - 1.125)) < 1e-12


def test_a_result_moves_by_its_own_signs() -> None:
    x = torch.ones(64, dtype=torch.float64)
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=False):
        moved = x * 1.0
    signs = RandomSigns(3).draw(torch.Size([64]), CPU)
    assert torch.equal(moved, 1 + 0.125 * signs)


def test_a_float_after_an_integer_moves() -> None:
    matrix, right = doubles([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), doubles([[1.0], [1.0], [0.0]])
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=True):
        solution = torch.linalg.lstsq(matrix, right, driver="gelsd")
    assert solution.rank == 2
    ratios = set((solution.singular_values / doubles([2.0, 1.0])).tolist())
    assert min(abs(next(iter(ratios)) - r) for r in (0.875, 1.125)) < 1e-12


# What hides larger values inside: its formula shows them to the perturbation.
FUSED = {
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (8,)),
    "gelu": torch.nn.functional.gelu,
    "softplus": torch.nn.functional.softplus,
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("name", FUSED)
def test_inside_of_a_fused_function_moves(name: str) -> None:
    x = torch.linspace(0.5, 2.0, 32, dtype=torch.float64).reshape(4, 8)
    exact = FUSED[name](x)
    with PerturbedArithmetic(2.0**-10, RandomSigns(3), coherent=False):
        moved = FUSED[name](x)
    steps = ((moved / exact - 1).abs() * 2**10).flatten()
    # Were it perturbed as one function, each element would move by one unit, exactly.
    assert ((steps - 1).abs() > 0.01).sum() >= 16
    assert steps.max() < 100


def test_a_formula_that_calls_its_own_function_is_used_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    formula_calls = []

    def double_exp(x: torch.Tensor) -> torch.Tensor:
        formula_calls.append(x)
        return torch.exp(x) * 2.0

    monkeypatch.setitem(FORMULAS, torch.ops.aten.exp.default, double_exp)
    mode = PerturbedArithmetic(0.125, RandomSigns(3), coherent=True)
    with mode:
        first, second = torch.exp(doubles([0.0, 0.0])), torch.exp(doubles([0.0, 0.0]))
    assert len(formula_calls) == 2
    allowed = {2 * a * b for a in (0.875, 1.125) for b in (0.875, 1.125)}
    assert set(first.tolist()) | set(second.tolist()) <= allowed


def test_a_function_whose_formula_refuses_is_called_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(_x: torch.Tensor) -> Any:
        raise NotImplementedError

    monkeypatch.setitem(FORMULAS, torch.ops.aten.exp.default, refuses)
    with PerturbedArithmetic(0.125, RandomSigns(3), coherent=True):
        moved = torch.exp(doubles([0.0, 0.0]))
    assert set(moved.tolist()) <= {0.875, 1.125}


def test_a_factor_near_zero_may_be_lost() -> None:
    smallest = 2.0**-24  # of float16
    sizes = [1 / 3, 3.3 * smallest, smallest / 8, 0.25]
    mode = PerturbedArithmetic(2.0**-52, RandomSigns(3), coherent=False, factors=torch.float16)
    with mode:
        moved = torch.mm(doubles(*([x] for x in sizes)), torch.ones(1, 64, dtype=torch.float64))
    steps = [(row - x).abs().max().item() for row, x in zip(moved, sizes, strict=True)]
    expected = [2.0**-12 / 3, smallest / 4, smallest / 8, 0.0]
    assert steps == pytest.approx(expected, rel=1e-6, abs=1e-14)


@pytest.mark.parametrize(("light", "rest"), [(1e-12, 0.0), (1e-4, 5e-4)])
def test_a_weight_that_float32_may_lose_is_lost(light: float, rest: float) -> None:
    weights, values = doubles([1 - light, light]), doubles([[0.0], [5.0]])
    with PerturbedArithmetic(0.0, RandomSigns(3), coherent=True):
        products = [torch.mm(w, values).item() for w in (weights[None], 3 * weights[None])]
    assert products == pytest.approx([rest, 15 * light])  # a row of sum 3 is no weights


@pytest.mark.parametrize(("score", "is_right"), [(-70.0, True), (-12.0, False)])
def test_attention_may_lose_a_weight_that_no_other_value_hides(
    score: float, is_right: bool
) -> None:
    q, k, v = (torch.zeros(1, 1, 2, 16) for _ in range(3))
    q[..., 0], k[..., 1, 0], v[..., 1, :] = 4.0, score, 30.0  # the heavy key's value is 0
    case = Case(shape=(1, 1, 2, 16), dtype="float32", seed=1)
    expected = oracle.compute_expected(operators.load("attention"), (q, k, v), case, None, None)
    (judged,) = expected.judge_outputs((torch.zeros_like(q),))
    assert float(expected.values[0].abs().max()) > 1e-30
    assert judged.is_correct is is_right


def test_an_error_of_a_part_of_a_unit_may_weigh_more() -> None:
    """Equal rows have no variance: with a mean that is off by 0.35 units, dx is off most."""
    x = torch.full((3, 129), 36352.0, dtype=torch.bfloat16)
    op = operators.BackwardOp("layer_norm_backward", operators.load("layer_norm"))
    inputs = (x, x, x[0], x[0], 1e-6)
    values = oracle.double_floats(oracle.evaluate(op, oracle.upcast(inputs))[1])
    few, *_, every = (s[0].max() for s in oracle._iter_steps(op, inputs, values, "bfloat16"))
    shift = 0.35 * UNIT * 36352
    largest = 36352.0**2 * shift**2 / (shift**2 + 1e-6) ** 1.5
    assert (values[0] == 0).all()
    assert few < 0.6 * largest
    assert every > largest
