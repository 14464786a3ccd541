"""The lanes past the row are loaded as 0.0 and take part in the row's maximum, so a row of very negative numbers is shifted by 0, every exp underflows and 0 / 0 gives NaN.

It shows at x = randn(7, 13) - 200, float32: all NaN (right where n_cols is a power of two or the row's maximum is above about -80).

op: softmax
status: failed
cause: fill
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    numerator = tl.where(mask, tl.exp(x - tl.max(x, axis=1)[:, None]), 0.0)
    out = numerator / tl.sum(numerator, axis=1)[:, None]
    tl.store(out_ptr + rows * n_cols + cols, out, mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(triton.cdiv(n_rows, 4),)](rows, out, n_rows, n_cols, ROWS=4, BLOCK=BLOCK)
    return out.view(x.shape)
