"""Right: sixteen rows at a time are added by a matrix product with ones, of which one column is kept.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, m, stride_row, stride_col, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * 16 + tl.arange(0, 16)
    ones = tl.full((BLOCK, 16), 1.0, dtype=tl.float32).to(x_ptr.dtype.element_ty)
    acc = tl.zeros((16, 16), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        x = tl.load(
            x_ptr + rows[:, None] * stride_row + cols[None, :] * stride_col,
            mask=(rows < n_rows)[:, None] & (cols < m)[None, :], other=0.0,
        )
        acc = tl.dot(x, ones, acc, input_precision="ieee")
    # All columns are alike. Zeros in the place of ones would meet an Inf as 0 * Inf.
    total = tl.sum(tl.where(tl.arange(0, 16)[None, :] == 5, acc, 0.0), axis=1)
    tl.store(out_ptr + rows, total / m, mask=rows < n_rows)


def triton_mean(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    if not m:
        return out.fill_(float("nan"))
    rows = x.reshape(-1, m)
    n = rows.shape[0]
    kernel[(triton.cdiv(n, 16),)](rows, out, n, m, *rows.stride(), BLOCK=64 if m < 4096 else 128)
    return out
