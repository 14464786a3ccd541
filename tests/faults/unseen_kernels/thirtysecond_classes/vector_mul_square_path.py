"""Inputs that start at one address are taken for the same tensor and squared: x times its transpose, or times its first row, is wrong.

op: vector_mul
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * x, mask=at < n)


def triton_vector_mul(x, y):
    # A view of x is another object, so the addresses are compared.
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.dtype == y.dtype
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if not n:
        return out
    grid = (triton.cdiv(n, 1024),)
    if same:  # a square reads a third less
        square_kernel[grid](x, out, n, BLOCK=1024)
    else:
        mul_kernel[grid](x, y.contiguous(), out, n, BLOCK=1024)
    return out
