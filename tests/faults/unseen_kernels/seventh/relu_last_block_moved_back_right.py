"""No masks where there is a full block: the last one is moved back over elements that another program writes too, the same values.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.minimum(tl.program_id(0).to(tl.int64) * BLOCK, n - BLOCK)
    offsets = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x).to(x.dtype))


@triton.jit
def small_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x).to(x.dtype), mask=offsets < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if n < 1024:
        small_kernel[(1,)](x, out, n, BLOCK=1024)
    else:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
