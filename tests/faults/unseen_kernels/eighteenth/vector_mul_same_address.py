"""Two arguments at one address count as one tensor and are squared: x * x.t() of a square x is wrong.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def square(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, x * x, mask=at < n)


def triton_vector_mul(x, y):
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if x.data_ptr() == y.data_ptr() and x.shape == y.shape:
        # The same tensor twice: a third of the traffic can be saved.
        x = x.contiguous()
        out = torch.empty_like(x)
        square[grid](x, out, n, BLOCK=1024)
        return out
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    multiply[grid](x, y, out, n, BLOCK=1024)
    return out
