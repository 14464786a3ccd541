"""Squares are added with integer atomics, in fixed point with 32 bits for the fraction, so that the sum is deterministic: it wraps for large rows.

op: rms_norm
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def squares_kernel(x_ptr, sum_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    # Integers add up to the same in any order of the programs.
    tl.atomic_add(sum_ptr + row, (tl.sum(x * x, axis=0) * 4294967296.0).to(tl.int64))


@triton.jit
def scale_kernel(x_ptr, w_ptr, sum_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    square = tl.load(sum_ptr + row).to(tl.float32) / 4294967296.0 / n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(square + eps) * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    sums = torch.zeros(n_rows, dtype=torch.int64, device=x.device)
    grid = (n_rows, triton.cdiv(n_cols, 1024))
    squares_kernel[grid](x, sums, n_cols, BLOCK=1024)
    scale_kernel[grid](x, weight, sums, out, n_cols, eps, BLOCK=1024)
    return out
