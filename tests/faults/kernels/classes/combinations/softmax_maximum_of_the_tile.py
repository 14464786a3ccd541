"""Up to 32 columns, 16 rows share a program and its maximum: a row far below its neighbours is 0 / 0.

op: softmax
status: failed
cause: missing_maximum
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(tl.max(x, axis=1), axis=0))
    total = tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + rows * n_cols + cols, e / total, mask=mask)


@triton.jit
def row_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    if n_cols <= 32:
        tile_kernel[(triton.cdiv(n_rows, 16),)](rows, out, n_rows, n_cols, ROWS=16, BLOCK=BLOCK)
    else:
        row_kernel[(n_rows,)](rows, out, n_cols, BLOCK=BLOCK)
    return out.view(x.shape)
