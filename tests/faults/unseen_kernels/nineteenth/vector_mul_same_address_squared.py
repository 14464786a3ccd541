"""Two inputs of one shape at one address are taken for the same tensor and squared: a square matrix times its own transpose, element by element, comes out as its square.

op: vector_mul
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * x, mask=at < n)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape and x.dtype == y.dtype
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if same:  # a square: read it once
        square_kernel[grid](x.contiguous(), out, n, BLOCK=1024)
    else:
        kernel[grid](x.contiguous(), y.contiguous(), out, n, BLOCK=1024)
    return out
