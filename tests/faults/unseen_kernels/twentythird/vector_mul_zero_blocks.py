"""If a whole block of x is zero, y is not read: 0 * NaN and 0 * Inf come out as 0 there.

op: vector_mul
status: failed
cause: sparse_skip
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    if tl.max((x != 0).to(tl.int32), axis=0) > 0:
        y = tl.load(y_ptr + at, mask=mask, other=0.0)
        tl.store(out_ptr + at, x.to(tl.float32) * y.to(tl.float32), mask=mask)
    else:  # masks, padding, pruned channels: a third of the traffic is saved
        tl.store(out_ptr + at, x, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 512),)](x, y, out, n, BLOCK=512)
    return out
