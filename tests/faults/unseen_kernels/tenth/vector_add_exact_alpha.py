"""For an alpha that is a power of two, float16 is added in float16: -2 * y may be past 65504 where the sum isn't.

op: vector_add
status: failed
cause: dtype
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, NARROW: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    if NARROW:
        out = x + y * tl.full((BLOCK,), alpha, dtype=tl.float16)
    else:
        out = x.to(tl.float32) + alpha * y.to(tl.float32)
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    narrow = x.dtype == torch.float16 and abs(math.frexp(alpha)[0]) == 0.5
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x, y, out, x.numel(), float(alpha), NARROW=narrow, BLOCK=1024
    )
    return out
