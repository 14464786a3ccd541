"""Sums of distances to a shift give mean and variance in one pass; four rows share the shift, the first row's value.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)
    # Near the mean, so that the squares stay small: E[d * d] - E[d] ** 2 does not cancel.
    shift = tl.load(x_ptr + first * m).to(tl.float32)
    shift = tl.where(tl.abs(shift) < float("inf"), shift, 0.0)  # keeps a NaN in its own row
    sums = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    squares = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + rows[:, None] * m + cols[None, :], mask=mask, other=0.0)
        d = tl.where(mask, x.to(tl.float32) - shift, 0.0)
        sums += d
        squares += d * d
    mean = tl.sum(sums, axis=1) / m
    variance = tl.sum(squares, axis=1) / m - mean * mean
    # NaN stays NaN, a rounding below zero does not become one.
    variance = tl.where(variance < 0.0, 0.0, variance)
    scale = 1.0 / tl.sqrt(variance + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n)[:, None] & (cols < m)[None, :]
        at = rows[:, None] * m + cols[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        normal = (x - shift - mean[:, None]) * scale[:, None]
        tl.store(out_ptr + at, normal * weight[None, :] + bias[None, :], mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        n = x.numel() // m
        BLOCK = min(triton.next_power_of_2(m), 512)
        ROWS = 4 if n >= 64 else 1
        kernel[(triton.cdiv(n, ROWS),)](
            x, weight, bias, out, n, m, eps, ROWS=ROWS, BLOCK=BLOCK
        )
    return out
