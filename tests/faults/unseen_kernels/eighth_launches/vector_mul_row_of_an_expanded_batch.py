"""A y that is expanded along the first dimension is taken for one row, also where it has three dimensions and many rows.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    y = tl.load(y_ptr + cols, mask=cols < n_cols)
    x = tl.load(x_ptr + rows * n_cols + cols, mask=mask)
    tl.store(out_ptr + rows * n_cols + cols, x * y, mask=mask)


def triton_vector_mul(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n > 0 and y.dim() > 1 and y.stride(0) == 0 and y.stride(-1) == 1:
        n_cols = x.shape[-1]
        n_rows = n // n_cols
        row_kernel[(triton.cdiv(n_rows, 8), triton.cdiv(n_cols, 256))](
            x, y, out, n_rows, n_cols, ROWS=8, BLOCK=256
        )
        return out
    flat_kernel[(triton.cdiv(n, 1024),)](x, y.contiguous(), out, n, BLOCK=1024)
    return out
