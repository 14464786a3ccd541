"""Rows that lie as columns in memory are averaged in the order of memory, and the result is stored in that order.

op: mean
status: failed
cause: layouts
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


@triton.jit
def columns_kernel(x_ptr, out_ptr, n, m, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    """x lies in memory as [m, n]: coalesced along n, and no copy of x is needed."""
    i = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, m, BLOCK_M):
        j = start + tl.arange(0, BLOCK_M)
        mask = (j < m)[:, None] & (i < n)[None, :]
        x = tl.load(x_ptr + j[:, None].to(tl.int64) * n + i[None, :], mask=mask, other=0.0)
        total += x.to(tl.float32)
    tl.store(out_ptr + i, tl.sum(total, axis=0) / m, mask=i < n)


def dense(shape, strides):
    """Return whether these dimensions, in some order, fill a piece of memory without gaps."""
    expected = 1
    for stride, size in sorted(zip(strides, shape)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def triton_mean(x):
    m = x.shape[-1]
    n = x.numel() // max(m, 1)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if n > 1 and x.stride(-1) == n and dense(x.shape[:-1], x.stride()[:-1]):
        columns_kernel[(triton.cdiv(n, 64),)](x, out, n, m, BLOCK_N=64, BLOCK_M=16)
    else:
        block = min(1024, triton.next_power_of_2(m))
        rows_kernel[(n,)](x.contiguous(), out, m, BLOCK=block)
    return out
