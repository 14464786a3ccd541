"""Sums as float32 accumulates them, against numbers worked by hand and against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from triton_magics import operators
from triton_magics.harness.correctness import accumulated_sums
from triton_magics.harness.correctness.accumulated_sums import (
    AccumulatedSums,
    EverySecond,
    Float8Products,
    TruncatedProducts,
)
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.oracle import compute_expected
from triton_magics.harness.process.device import CPU
from triton_magics.model import Case

FORWARDS, BACKWARDS, RANDOM = 0, 1, 2


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).double()


@pytest.mark.in_turn
def test_small_term_is_lost_behind_a_large_one_but_not_before_it() -> None:
    x = doubles(2.0**25, 1.0, 1.0, 1.0)
    with AccumulatedSums(FORWARDS):
        forwards = x.sum()
    with AccumulatedSums(BACKWARDS):
        backwards = x.sum()
    assert (float(forwards), float(backwards)) == (2.0**25, 2.0**25 + 4)


def test_terms_after_a_sum_of_zero_are_not_rounded() -> None:
    x = doubles(1e-5, -1e-5, 1e-12, -1e-12)
    with AccumulatedSums(FORWARDS):
        assert float(x.sum()) == 0.0


@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_equal_terms_err_as_in_numpy(scale: float) -> None:
    x = torch.full((1, 4097), 0.1234567 * scale)
    exact = float(x.double().sum())
    in_float32 = float(np.add.accumulate(x.numpy(), -1)[0, -1]) - exact
    with AccumulatedSums(FORWARDS):
        error = float(x.double().sum(-1)) - exact
    assert abs(in_float32) > 3e-6 * exact
    assert error == pytest.approx(in_float32, rel=0.05)


@pytest.mark.parametrize(("n", "term"), [(4099, 768.003), (70001, 1234.5), (65537, 2.0 / 3)])
def test_equal_terms_divided_first_err_no_more_than_some_order(n: int, term: float) -> None:
    """All orders of equal terms are one: their errors differ where the terms are scaled."""
    x = torch.full((n,), term)
    exact = float(x.double().sum())
    divided_first = float(np.add.accumulate((x / n).numpy())[-1]) * n - exact
    errors = []
    for which in range(accumulated_sums.N_ORDERS):
        with AccumulatedSums(which):
            errors.append(float(x.double().sum()) - exact)
    assert len({round(error / exact, 9) for error in errors}) > 5
    assert abs(divided_first) < 4 * max(map(abs, errors))


def test_error_of_random_terms_has_the_size_of_numpys() -> None:
    x = normal(500, 1000)
    exact = x.sum(-1)
    in_float32 = torch.from_numpy(np.add.accumulate(x.float().numpy(), -1)[:, -1]).double()
    with AccumulatedSums(FORWARDS):
        error = x.sum(-1) - exact
    sizes = [float(e.square().mean().sqrt()) for e in (error, in_float32 - exact)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.1)


@pytest.mark.parametrize("few", [0, accumulated_sums.FEW_TERMS])
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_product_is_added_over_k(
    few: int, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulated_sums, "FEW_TERMS", few)
    a, b = normal(*batch, 5, 700), normal(*batch, 700, 7, seed=2)
    with AccumulatedSums(BACKWARDS) as sums:
        error = (a @ b - a.double().matmul(b)).abs()
    assert sums.n_added == 2
    with AccumulatedSums(FORWARDS):
        forwards = a @ b
    assert 1e-6 < float((forwards - a @ b).abs().max()) < 1e-3
    assert forwards.shape == (*batch, 5, 7)
    assert not error.any()


CASES: dict[str, tuple[int, Callable[[torch.Tensor], torch.Tensor]]] = {
    "all": (1, lambda x: x.sum()),
    "two dimensions": (1, lambda x: x.sum((0, 2))),
    "mean": (1, lambda x: x.mean((-1, -2), keepdim=True)),
    "variance": (2, lambda x: x.var(-1)),
    "deviation": (2, lambda x: x.std()),
    "layer_norm": (2, lambda x: functional.layer_norm(x, (64,))),
    "rms_norm": (1, lambda x: functional.rms_norm(x, (64,))),
    "softmax": (1, lambda x: torch.softmax(x, 1)),
    "logsumexp": (1, lambda x: torch.logsumexp(x, -1)),
    "attention": (3, lambda x: functional.scaled_dot_product_attention(x, x, x)),
    "linear": (1, lambda x: functional.linear(x, x[0], x[0, :, 0])),
    "einsum": (1, lambda x: torch.einsum("abk,ack->abc", x, x)),
    "norm": (1, lambda x: torch.linalg.vector_norm(x, dim=-1)),
    "no sum": (0, torch.exp),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_inside_torchs_functions_are_added(name: str) -> None:
    n_added, function = CASES[name]
    x = normal(3, 17, 64)
    exact = function(x)
    with AccumulatedSums(RANDOM) as sums:
        got = function(x)
    assert sums.n_added == n_added
    assert got.shape == exact.shape
    assert got.dtype is torch.float64
    error = float(((got - exact).abs() / exact.abs().amax()).max())
    assert error == 0 if not n_added else 1e-9 < error < 1e-5


def test_integers_and_empty_tensors_are_left_to_torch() -> None:
    with AccumulatedSums(FORWARDS) as sums:
        assert int(torch.arange(5).sum()) == 10
        assert float(torch.empty(0, dtype=torch.float64).sum()) == 0.0
        assert torch.empty(3, 0, dtype=torch.float64).mm(normal(0, 2)).tolist() == [[0, 0]] * 3
    assert sums.n_added == 0


def test_many_terms_are_added_in_two_orders_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accumulated_sums, "FEW_TERMS", 10)
    counts = []
    for which in range(4):
        with AccumulatedSums(which) as sums:
            normal(11).sum()
            normal(10).sum()
        counts.append(sums.n_added)
    assert counts == [2, 2, 1, 1]


def test_partial_sums_of_a_product_are_truncated() -> None:
    a = doubles(2.0**24, 1.0, 1.0, 1.0, -(2.0**24)).unsqueeze(0)
    ones = torch.ones(5, 1, dtype=torch.float64)
    got = []
    for group in (1, 2, 4):
        with TruncatedProducts(group) as products:
            got.append(float(a @ ones))
        assert products.n_added == 1
    assert got == [0.0, 2.0, 2.0]  # 2**24 + 1 and 2**24 + 3 lose their last bit


def test_a_half_of_mixed_products_is_exact() -> None:
    a, b = normal(40, 400).abs(), normal(400, 40, seed=2).abs()
    with TruncatedProducts(8, every_second=EverySecond.EXACT):
        got = a @ b
    is_exact = got == a.double().matmul(b)
    assert is_exact[:, 1::2].all()
    assert not is_exact[:, ::2].any()


@pytest.mark.parametrize("seed", range(5))
def test_a_logit_that_is_added_up_by_itself_is_allowed(seed: int) -> None:
    """All classes have the same weights; the target's logit has other roundings."""
    op = operators.load("linear_cross_entropy")
    layouts = (("weight", "expanded"),)
    case = Case(
        shape=(3, 5, 8209), dtype="bfloat16", regime="shifted", special="huge element",
        layouts=layouts, seed=seed,
    )  # fmt: skip
    x, weight, target = make_pristine(op, case, CPU)
    logits = TruncatedProducts(8).multiply(x, weight.T)
    picked = (x.float() * weight[target].float()).sum(1).double()
    logits[torch.arange(3), target] = picked
    loss = (torch.logsumexp(logits, 1) - picked).mean()
    expected = compute_expected(op, (x, weight, target), case, None, None)
    assert abs(loss - expected.values[0]) > 1  # log 5 is right
    assert abs(loss - expected.values[0]) < expected.allowed[0]


def test_infinities_and_nan_survive_a_truncated_product() -> None:
    a = doubles(1.0, float("inf"), float("nan"), -float("inf")).unsqueeze(1)
    with TruncatedProducts(8):
        got = a @ torch.ones(1, 1, dtype=torch.float64)
    assert got[:, 0].tolist() == pytest.approx(a[:, 0].tolist(), nan_ok=True)
    with TruncatedProducts(8, share=0.25):
        got = a @ torch.ones(1, 1, dtype=torch.float64)
    assert got[:, 0].tolist() == pytest.approx(a[:, 0].tolist(), nan_ok=True)


def test_results_may_have_a_share_of_the_error() -> None:
    a, b = normal(3, 1400).abs(), normal(1400, 5, seed=2).abs()
    error = TruncatedProducts(8).multiply(a, b) - a @ b
    with TruncatedProducts(8, share=0.25) as products:
        assert ((a @ b) - a.matmul(b)).abs().max() == 0  # both are in this arithmetic
        got = a @ b
    assert products.n_added == 3
    torch.testing.assert_close(got - a.matmul(b), error / 4, rtol=1e-6, atol=0)
    a, b = a[:, :400], b[:400]  # few groups: the whole error
    with TruncatedProducts(8, share=0.25) as products:
        got = a @ b
    assert torch.equal(got, products.multiply(a, b))


def test_every_second_product_may_be_added_up_from_behind() -> None:
    a, b = normal(3, 400).abs(), normal(400, 6, seed=2).abs()
    with TruncatedProducts(8, every_second=EverySecond.BACKWARDS) as products:
        got = a @ b
    forwards = products.multiply(a, b)
    backwards = products.multiply(a.flip(1), b.flip(0))
    assert torch.equal(got[:, ::2], forwards[:, ::2])
    assert torch.equal(got[:, 1::2], backwards[:, 1::2])
    assert not torch.equal(forwards, backwards)


def test_batched_products_and_no_sums_are_truncated() -> None:
    a, b = normal(2, 3, 5, 40).abs(), normal(2, 3, 40, 7, seed=2).abs()
    with TruncatedProducts(8) as products:
        error = a @ b - a.double().matmul(b)
        total = a.sum() - a.sum()
    assert not error.any()
    assert float(total) == 0
    assert products.n_added == 2
    with TruncatedProducts(8):
        got = a @ b
    share = (1 - got / a.matmul(b)).flatten()
    assert float(share.min()) >= 0
    assert 1e-8 < float(share.max()) < 5 * 2.0**-23


def test_terms_of_float8_are_cut_off_13_bits_below_the_largest() -> None:
    a = doubles(2.0**13, 1.5, 1.5, -(2.0**13)).unsqueeze(0)
    ones = torch.ones(4, 1, dtype=torch.float64)
    with Float8Products() as products:
        got = float(a @ ones)
    assert got == 2.0  # each 1.5 loses its half
    assert products.n_added == 1


def test_sums_of_128_products_of_float8_are_added_in_float32() -> None:
    first = [2.0**20, *[0.0] * 127, 1.0, *[0.0] * 127, -(2.0**20)]
    a = doubles(*first).unsqueeze(0)
    with Float8Products():
        got = float(a @ torch.ones(257, 1, dtype=torch.float64))
        lost = float(a[:, [0, 128, 256]] @ torch.ones(3, 1, dtype=torch.float64))
    assert (got, lost) == (1.0, 0.0)


def test_products_of_float8_by_rows_are_those_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = normal(2, 9, 70).double(), normal(2, 70, 5, seed=2).double()
    with Float8Products():
        whole = a @ b
    monkeypatch.setattr(accumulated_sums, "FEW_TERMS", 2 * 32 * 5)
    with Float8Products():
        by_rows = a @ b
    assert torch.equal(whole, by_rows)
    share = (whole - a.matmul(b)).abs() / a.abs().matmul(b.abs())
    assert 2.0**-20 < float(share.max()) < 2.0**-11
