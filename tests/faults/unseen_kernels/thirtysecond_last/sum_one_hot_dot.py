"""Right: rows are added by tl.dot with a matrix whose first column is ones and whose others are zeros; 0 * inf there is NaN, but only the first column is used.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, m, x_n, x_m, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, 16)
    unit = tl.zeros((BLOCK, 16), dtype=tl.float32) + (columns[None, :] == 0).to(tl.float32)
    acc = tl.zeros((ROWS, 16), dtype=tl.float32)
    for turn in range(tl.cdiv(m, BLOCK), 0, -1):  # from the end of the rows
        cols = (turn - 1) * BLOCK + tl.arange(0, BLOCK)
        places = rows[:, None].to(tl.int64) * x_n + cols[None, :].to(tl.int64) * x_m
        x = tl.load(x_ptr + places, mask=(rows[:, None] < n) & (cols[None, :] < m), other=0.0)
        acc = tl.dot(x.to(tl.float32), unit, acc, input_precision="ieee")
    total = tl.sum(tl.where(columns[None, :] == 0, acc, 0.0), axis=1)
    tl.store(out_ptr + rows, total.to(out_ptr.dtype.element_ty), mask=rows < n)


def triton_sum(x):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n, m = out.numel(), x.shape[-1]
    if n == 0:
        return out
    flat = x if x.dim() == 2 else x.reshape(n, m)
    kernel[(triton.cdiv(n, 16),)](flat, out, n, m, *flat.stride(), ROWS=16, BLOCK=64)
    return out
