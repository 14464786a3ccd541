"""Offsets in 32 bits: beyond 2,147,483,647 elements they turn negative.

op: relu
status: failed
cause: int_overflow
needs: gpu, more than 2**31 elements, 9 GB in half precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int32)
    mask = (offsets >= 0) & (offsets < n)
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.zeros_like(x)
    kernel[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
    return out
