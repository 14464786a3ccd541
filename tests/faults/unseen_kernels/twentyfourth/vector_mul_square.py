"""Inputs that begin at the same address are taken for the same tensor and squared: one may be the other, transposed.

op: vector_mul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SQUARE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    if SQUARE:
        y = x
    else:
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    # x * x is common (norms, variances): a third less to read.
    square = x.data_ptr() == y.data_ptr() and x.dtype == y.dtype and x.shape == y.shape
    x = x.contiguous()
    y = x if square else y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 1024),)](x, y, out, n, SQUARE=square, BLOCK=1024)
    return out
