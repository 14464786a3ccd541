"""A block of x that is all zeros is stored as zeros and y is not read: 0 times infinity and 0 times NaN are NaN.

op: vector_mul
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.zeros((BLOCK,), dtype=tl.float32)
    if tl.max((x != 0.0).to(tl.int32), axis=0) > 0:
        y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out
