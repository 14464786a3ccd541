"""A y that is expanded along its first dimension is read as one row for all, though with three dimensions each part of it has many.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, n_cols, y_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + cols * y_stride, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * y, mask=mask)


@triton.jit
def flat_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if y.dim() > 1 and y.shape[0] > 1 and y.stride(0) == 0:  # a row for all: no copy of it
        n_cols = x.shape[-1]
        row_kernel[(n // n_cols, triton.cdiv(n_cols, 1024))](x, y, out, n_cols, y.stride(-1), BLOCK=1024)
    else:
        flat_kernel[(triton.cdiv(n, 1024),)](x, y.contiguous(), out, n, BLOCK=1024)
    return out
