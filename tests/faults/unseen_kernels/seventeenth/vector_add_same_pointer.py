"""Two arguments with one address are taken for one tensor and read once: a matrix and its transpose have one address too.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * factor, mask=at < n)


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    same = x.data_ptr() == y.data_ptr() and x.shape == y.shape
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    if same and alpha > 0:
        # x + alpha * x: a third of the traffic less.
        scale_kernel[grid](x, out, n, 1.0 + alpha, BLOCK=1024)
    else:
        kernel[grid](x, y.contiguous(), out, n, float(alpha), BLOCK=1024)
    return out
