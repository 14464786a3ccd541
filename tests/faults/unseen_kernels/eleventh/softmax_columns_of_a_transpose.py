"""A transposed x is read by columns, taken as one after the other: wrong for the transpose of a part of a wider matrix.

op: softmax
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def columns_kernel(x_ptr, out_ptr, n_rows, n_cols, step, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)[None, :]
    cols = tl.arange(0, BLOCK)[:, None].to(tl.int64)
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + cols * step + rows, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0)[None, :])
    tl.store(out_ptr + rows * n_cols + cols, e / tl.sum(e, axis=0)[None, :], mask=mask)


def triton_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    BLOCK = triton.next_power_of_2(n_cols)
    if x.dim() == 2 and x.stride(0) == 1 and x.stride(1) > 1 and n_cols <= 4096:
        n_rows = x.shape[0]
        columns_kernel[(triton.cdiv(n_rows, 16),)](x, out, n_rows, n_cols, n_rows, BLOCK=BLOCK, WIDE=16)
    else:
        x = x.contiguous()
        rows_kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=BLOCK)
    return out
