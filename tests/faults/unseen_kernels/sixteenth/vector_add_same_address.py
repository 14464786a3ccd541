"""Two tensors at one address are loaded once: a square matrix and its transpose begin at the same address too.

op: vector_add
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, ONE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    if ONE:
        y = x
    else:
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x + alpha * y, mask=at < n)


def triton_vector_add(x, y, alpha=1.0):
    # x + alpha * x is common in residuals: one load does
    one = x.data_ptr() == y.data_ptr() and x.dtype == y.dtype
    x = x.contiguous()
    y = x if one else y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), float(alpha), ONE=one, BLOCK=1024)
    return out
