"""Two tensors that start at one address with the same strides are read once.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


@triton.jit
def square(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * x, mask=mask)


def triton_vector_mul(x, y):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    grid = (triton.cdiv(n, 1024),)
    if x.data_ptr() == y.data_ptr() and x.stride() == y.stride():
        square[grid](x.contiguous(), out, n, BLOCK=1024)
    else:
        multiply[grid](x.contiguous(), y.contiguous(), out, n, BLOCK=1024)
    return out
