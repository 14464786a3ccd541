"""Two parts of one tensor with the same strides are read from one address and the distance between them; everything else is copied first.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def parts(x_ptr, out_ptr, m, row_stride, distance, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = tl.load(x_ptr + row * row_stride + distance + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * m + cols, x * y, mask=cols < m)


def row_stride(x):
    """Return the distance between rows, or None where there is not one for all."""
    if x.dim() < 2 or x.numel() == 0 or x.stride(-1) != 1:
        return None
    for i in range(x.dim() - 2):
        if x.stride(i) != x.stride(i + 1) * x.shape[i + 1]:
            return None
    return x.stride(-2)


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    one = x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() and x.stride() == y.stride()
    rows = row_stride(x) if one and x.dtype == y.dtype else None
    distance = y.storage_offset() - x.storage_offset()
    if rows is not None and not x.is_contiguous():
        m = x.shape[-1]
        parts[(x.numel() // m, triton.cdiv(m, 1024))](x, out, m, rows, distance, BLOCK=1024)
    else:
        x, y = x.contiguous(), y.contiguous()
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
