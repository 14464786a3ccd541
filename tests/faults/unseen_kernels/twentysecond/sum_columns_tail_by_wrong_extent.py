"""A transposed matrix is added along its columns, and the last partial block of a row is skipped if the number of rows, not the row's length, is a multiple of 32.

op: sum
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row.to(tl.int64) * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def column_kernel(x_ptr, out_ptr, height, width, stride, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    """Add x, [height, width] in memory, along its height."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < width
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    full = height // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        at = rows[:, None].to(tl.int64) * stride + cols[None, :]
        total += tl.load(x_ptr + at, mask=inside[None, :], other=0.0).to(tl.float32)
    if not EVEN:
        rows = full + tl.arange(0, BLOCK)
        at = rows[:, None].to(tl.int64) * stride + cols[None, :]
        mask = (rows < height)[:, None] & inside[None, :]
        total += tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + cols, tl.sum(total, axis=0), mask=inside)


def triton_sum(x):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    m = x.shape[-1]
    if x.dim() == 2 and x.stride(0) == 1 and x.stride(1) >= x.shape[0]:
        height = x.shape[0]
        column_kernel[(triton.cdiv(height, 32),)](
            x, out, m, height, x.stride(1), EVEN=height % 32 == 0, BLOCK=32
        )
    else:
        row_kernel[(x.numel() // m,)](
            x.contiguous(), out, m, BLOCK=min(1024, triton.next_power_of_2(m))
        )
    return out
