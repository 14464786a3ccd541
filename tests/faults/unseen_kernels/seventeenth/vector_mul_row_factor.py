"""A y that repeats one row is read as a row, with steps of one: a row that was a column of a matrix has larger steps.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * cols + at, x * y, mask=at < cols)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    x = x.contiguous()
    out = torch.empty_like(x)
    if y.dim() > 1 and all(step == 0 for step in y.stride()[:-1]):
        # A row that expand repeats: no copy, and it stays in the cache.
        cols = x.shape[-1]
        row_kernel[(x.numel() // cols, triton.cdiv(cols, 1024))](x, y, out, cols, BLOCK=1024)
    else:
        n = x.numel()
        kernel[(triton.cdiv(n, 1024),)](x, y.contiguous(), out, n, BLOCK=1024)
    return out
