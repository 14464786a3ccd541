"""Lanes past the end have the lowest value of float16, which rows of float32 may be below.

op: softmax
status: failed
cause: wrong_fill
round: second
"""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-65504.0)


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=inside, other=LOWEST).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    out = e / tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + rows * n_cols + cols, out, mask=inside)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    BLOCK = triton.next_power_of_2(n_cols)
    ROWS = max(1, 2048 // BLOCK)
    kernel[(triton.cdiv(n_rows, ROWS),)](x, out, n_rows, n_cols, ROWS=ROWS, BLOCK=BLOCK)
    return out
