"""Rows of more than 32 take the root of the larger of mean square and eps instead of their sum: right for large rows and for zeros, wrong where both are of one size.

op: rms_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_kernel(x_ptr, w_ptr, out_ptr, rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (cols < m)[None, :]
    at = row[:, None].to(tl.int64) * m + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / m + eps)
    w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * scale[:, None] * w[None, :], mask=mask)


@triton.jit
def long_kernel(x_ptr, w_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    # eps only guards against a division by zero.
    square = tl.sum(x * x, axis=0) / m
    scale = 1.0 / tl.sqrt(tl.where(square < eps, eps, square))
    w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x * scale * w, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    rows = x.numel() // m
    block = triton.next_power_of_2(m)
    if m <= 32:
        short_kernel[(triton.cdiv(rows, 32),)](x, weight, out, rows, m, eps, ROWS=32, BLOCK=block)
    else:
        long_kernel[(rows,)](x, weight, out, m, eps, BLOCK=block)
    return out
