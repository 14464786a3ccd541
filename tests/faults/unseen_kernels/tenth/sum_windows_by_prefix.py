"""Sums of overlapping windows are differences of a prefix sum, in which a NaN or Inf stays for good.

op: sum
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def prefix_kernel(x_ptr, prefix_ptr, n, BLOCK: tl.constexpr):
    carry = tl.zeros((1,), dtype=tl.float64)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float64)
        tl.store(prefix_ptr + 1 + offsets, carry + tl.cumsum(x, axis=0), mask=offsets < n)
        carry += tl.sum(x, axis=0)


@triton.jit
def window_kernel(prefix_ptr, out_ptr, n_rows, step, width, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = rows < n_rows
    before = tl.load(prefix_ptr + rows * step, mask=mask)
    after = tl.load(prefix_ptr + rows * step + width, mask=mask)
    tl.store(out_ptr + rows, (after - before).to(tl.float32), mask=mask)


def triton_sum(x):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.dim() == 2 and x.shape[0] > 1 and x.stride(1) == 1 and 0 < x.stride(0) < n_cols:
        n_rows, step = x.shape[0], x.stride(0)
        n = (n_rows - 1) * step + n_cols
        prefix = torch.zeros(n + 1, dtype=torch.float64, device=x.device)
        prefix_kernel[(1,)](x.as_strided((n,), (1,)), prefix, n, BLOCK=1024)
        window_kernel[(triton.cdiv(n_rows, 256),)](prefix, out, n_rows, step, n_cols, BLOCK=256)
        return out
    row_kernel[(out.numel(),)](x.contiguous(), out, n_cols, BLOCK=1024)
    return out
