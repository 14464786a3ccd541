"""Two inputs at one address are squared with one load; a square matrix and its transpose start at one address too.

op: vector_mul
status: failed
cause: alias
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x * y).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, (x * x).to(out_ptr.dtype.element_ty), mask=mask)


def triton_vector_mul(x, y):
    squared = x.data_ptr() == y.data_ptr()  # shape and dtype are the same: mul(x, x)
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if squared:  # two thirds of the bytes
        square_kernel[grid](x, out, n, BLOCK=1024)
    else:
        mul_kernel[grid](x, y.contiguous(), out, n, BLOCK=1024)
    return out
