"""Tensors are walked flat, in whatever order of dimensions, where x, y and the new output have the same strides: those of empty_like are dense, so a view with gaps or repeats never passes.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    out = torch.empty_like(x)
    if not (x.stride() == y.stride() == out.stride()):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
