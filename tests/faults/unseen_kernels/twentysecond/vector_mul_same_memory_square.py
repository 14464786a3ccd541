"""If x and y begin at the same address they are taken for one tensor, which is squared: x and its transpose begin there too.

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
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


@triton.jit
def square(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * x, mask=at < n)


def triton_vector_mul(x, y):
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if same:
        # One tensor twice: a third less to read.
        square[grid](x, out, n, BLOCK=1024)
    else:
        multiply[grid](x, y.contiguous(), out, n, BLOCK=1024)
    return out
