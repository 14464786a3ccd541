"""Infinities become the largest finite number.

op: vector_add
status: failed
cause: nan_lost
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    out = x + alpha * y
    out = tl.where(out > 3.4e38, 3.4e38, tl.where(out < -3.4e38, -3.4e38, out))
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), alpha, BLOCK=512)
    return out
