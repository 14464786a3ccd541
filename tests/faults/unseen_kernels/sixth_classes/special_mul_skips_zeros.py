"""A block of x that is all zeros is stored as 0 and y is not read: infinity and NaN in y are lost.

op: vector_mul
status: failed
cause: special values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    product = x
    if tl.sum((x != 0.0).to(tl.int32), axis=0) > 0:
        y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        product = x * y
    tl.store(out_ptr + offsets, product, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 256),)](x, y, out, out.numel(), BLOCK=256)
    return out
