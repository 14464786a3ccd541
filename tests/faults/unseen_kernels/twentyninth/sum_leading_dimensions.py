"""Rows that lie across memory are added without a copy, their leading dimensions taken for one: wrong where two of those don't merge.

op: sum
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def across_kernel(
    x_ptr, out_ptr, n, m, stride_batch, stride_m, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr
):
    """Neighbours in memory belong to different rows: each column of a tile is a row's piece."""
    batch = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, m, BLOCK_M):
        cols = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
        total += tl.load(
            x_ptr + batch * stride_batch + cols[:, None] * stride_m + rows[None, :],
            mask=(cols < m)[:, None] & (rows < n)[None, :], other=0.0,
        ).to(tl.float32)
    tl.store(out_ptr + batch * n + rows, tl.sum(total, axis=0), mask=rows < n)


def triton_sum(x):
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    m = x.shape[-1]
    if x.dim() > 1 and x.stride(-1) != 1 and x.stride(-2) == 1:
        n = x.shape[-2]
        batches = x.shape[:-2].numel()
        stride_batch = x.stride(-3) if x.dim() > 2 else 0
        across_kernel[(batches, triton.cdiv(n, 128))](
            x, out, n, m, stride_batch, x.stride(-1), BLOCK_N=128, BLOCK_M=32
        )
        return out
    row_kernel[(x.numel() // m,)](x.contiguous(), out, m, BLOCK=min(2048, triton.next_power_of_2(m)))
    return out
