"""The row is kept in 16 bits: from 32,768 rows on it wraps.

op: relu
status: failed
cause: int_overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int16)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    for start in range(0, n_cols, BLOCK):
        mask = (rows >= 0) & (rows < n_rows) & (start + cols < n_cols)
        offsets = rows.to(tl.int64) * n_cols + start + cols
        x = tl.load(x_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.zeros_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    kernel[(triton.cdiv(n_rows, 256),)](x, out, n_rows, n_cols, ROWS=256, BLOCK=16)
    return out
