"""The maximum is taken over the whole tile of four rows, not of each row, so a row far below its neighbours underflows to 0 / 0 = NaN.

It shows at x (7, 13), float32, randn with row 1 lowered by 200.

op: softmax
status: failed
cause: axis
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x))
    out = numerator / tl.sum(numerator, axis=1)[:, None]
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(triton.cdiv(n_rows, 4),)](rows, out, n_rows, n_cols, ROWS=4, BLOCK=BLOCK)
    return out.view(x.shape)
