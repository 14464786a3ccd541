"""Attention by the formulas of fused kernels: equal to torch's, and used only where they hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from triton_magics.harness.correctness.accumulated_sums import AccumulatedSums
from triton_magics.harness.correctness.fused_attention import FusedAttention

N_QUERIES, N_KEYS, DIM = 9, 7, 16
MASK = torch.rand(N_QUERIES, N_KEYS, generator=torch.Generator().manual_seed(2))
BOOLS = MASK > 0.4
BOOLS[3] = False  # a query without a key


def drawn(*shape: int, seed: int) -> torch.Tensor:
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return x.requires_grad_()


def gradients(heads: int, **options: Any) -> tuple[torch.Tensor, ...]:
    """Return the output of attention, and the gradients of q, k and v."""
    inputs = (
        drawn(2, 4, N_QUERIES, DIM, seed=3),
        drawn(2, heads, N_KEYS, DIM, seed=4),
        drawn(2, heads, N_KEYS, DIM, seed=5),
    )
    out = scaled_dot_product_attention(*inputs, **options)
    grad = drawn(*out.shape, seed=6).detach()
    return out.detach(), *torch.autograd.grad(out, inputs, grad)


@pytest.mark.parametrize(
    ("heads", "options"),
    [
        (4, {}),
        (4, {"is_causal": True}),
        (4, {"scale": 0.3}),
        (4, {"attn_mask": BOOLS}),
        (4, {"attn_mask": MASK.double()}),
        (2, {"enable_gqa": True}),
    ],
)
def test_formulas_give_what_torch_gives(heads: int, options: dict[str, Any]) -> None:
    torch_own = gradients(heads, **options)
    with FusedAttention():
        ours = gradients(heads, **options)
    for got, value in zip(ours, torch_own, strict=True):
        torch.testing.assert_close(got, value, rtol=1e-12, atol=1e-13)


def test_delta_is_made_of_the_output() -> None:
    with AccumulatedSums(0) as sums, FusedAttention():
        gradients(4)
    # scores, out; scores again, grad @ v^T, grad . out; the gradients of q, k and v
    assert sums.n_products == 8


@pytest.mark.parametrize("wants_mask_gradient", [True, False])
def test_what_fused_kernels_lack_is_left_to_torch(wants_mask_gradient: bool) -> None:
    mask = drawn(N_QUERIES, N_KEYS, seed=7).detach().requires_grad_(wants_mask_gradient)
    q, k, v = (drawn(1, 1, n, DIM, seed=n) for n in (N_QUERIES, N_KEYS, N_KEYS))
    with FusedAttention():
        out = scaled_dot_product_attention(q, k, v, mask)
        broadcast = scaled_dot_product_attention(q.expand(2, 3, -1, -1), k, v)
    is_own = "_Attention" in out.grad_fn.name()
    assert is_own is not wants_mask_gradient
    assert broadcast.shape == (2, 3, N_QUERIES, DIM)
    assert "_Attention" not in broadcast.grad_fn.name()


def test_attention_inside_torchs_functions_is_computed_so() -> None:
    layer = torch.nn.MultiheadAttention(16, 2, batch_first=True, dtype=torch.float64)
    x = drawn(1, 9, 16, seed=8)
    theirs = layer(x, x, x, need_weights=False)[0]
    with AccumulatedSums(0) as sums, FusedAttention():
        ours = layer(x, x, x, need_weights=False)[0]
    assert sums.n_products == 4  # in, scores, out, out of the layer
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    before = torch.nn.functional.scaled_dot_product_attention
    assert before is scaled_dot_product_attention


def test_transformed_attention_is_left_to_torch() -> None:
    q, k, v = (drawn(1, 1, n, DIM, seed=n).detach() for n in (N_QUERIES, N_KEYS, N_KEYS))

    def total(x: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(x, k, v).sum()

    theirs = torch.func.grad(total)(q)
    with FusedAttention():
        ours = torch.func.grad(total)(q)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)
