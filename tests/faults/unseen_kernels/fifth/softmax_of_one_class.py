"""Rows of one element are filled with 1, without a look at them: of an infinity or a NaN it should be NaN.

op: softmax
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

@triton.jit
def ones_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.full((BLOCK,), 1.0, tl.float32), mask=offs < n)


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    places = rows * n_cols + cols
    x = tl.load(x_ptr + places, mask=inside, other=-float("inf")).to(tl.float32)
    x = tl.where(rows < n_rows, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + places, e / tl.sum(e, axis=1)[:, None], mask=inside)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols == 1:
        ones_kernel[(triton.cdiv(n_rows, 1024),)](out, n_rows, BLOCK=1024)
        return out
    block = triton.next_power_of_2(n_cols)
    rows = max(1, 2048 // block)
    rows_kernel[(triton.cdiv(n_rows, rows),)](x, out, n_rows, n_cols, ROWS=rows, BLOCK=block)
    return out
