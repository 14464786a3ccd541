"""Rows are added by a product with a matrix of ones, in float32, and divided by the columns.

op: mean
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    ones = tl.full((BLOCK, 16), 1.0, dtype=tl.float32)
    acc = tl.zeros((ROWS, 16), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows[:, None] * xr + cols[None, :] * xc,
                    mask=(rows < n_rows)[:, None] & (cols < n_cols)[None, :], other=0.0)
        acc += tl.dot(x.to(tl.float32), ones, input_precision="ieee")
    tl.store(out_ptr + rows, tl.max(acc, axis=1) / n_cols, mask=rows < n_rows)


def triton_mean(x):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(triton.cdiv(n_rows, 16),)](
        rows, out, n_rows, n_cols, *rows.stride(), ROWS=16, BLOCK=64
    )
    return out
