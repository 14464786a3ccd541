"""Short rows share a program and one shift of the single-pass variance: rows of very different means cancel.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = cols < m
    mask = (rows < n_rows)[:, None] & inside[None, :]
    at = rows[:, None] * m + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    # Both sums in one go; a shift by a value of the data keeps a large mean from cancelling.
    shift = tl.load(x_ptr + first * m).to(tl.float32)
    shift = tl.where(tl.abs(shift) < float("inf"), shift, 0.0)
    d = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(d, axis=1) / m
    variance = tl.sum(d * d, axis=1) / m - mean * mean
    variance = tl.where(variance < 0.0, 0.0, variance)
    scale = 1.0 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    out = (d - mean[:, None]) * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + at, out, mask=mask)


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < m
    x = tl.load(x_ptr + row * m + cols, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask, x - tl.sum(x, axis=0) / m, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / m + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, d * scale * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    m = x.shape[-1]
    n_rows = x.numel() // m
    BLOCK = triton.next_power_of_2(m)
    if 1 < m <= 64:
        short_kernel[(triton.cdiv(n_rows, 16),)](
            x, weight, bias, out, n_rows, m, eps, ROWS=16, BLOCK=BLOCK
        )
    else:
        row_kernel[(n_rows,)](x, weight, bias, out, m, eps, BLOCK=BLOCK)
    return out
