"""A factor with stride 0 in its first and last dimension is taken for one number: wrong for a factor per channel, expanded to three dimensions.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SCALAR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    if SCALAR:
        y = tl.load(y_ptr).to(tl.float32)
    else:
        y = tl.load(y_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=mask)


def triton_vector_mul(x, y):
    x = x.contiguous()
    scalar = y.dim() > 0 and y.stride(0) == 0 and y.stride(-1) == 0
    if not scalar:
        y = y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), SCALAR=scalar, BLOCK=1024)
    return out
