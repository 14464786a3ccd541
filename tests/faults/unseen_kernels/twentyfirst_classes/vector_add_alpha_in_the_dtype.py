"""The factor alpha is first cast to the dtype of y, so that nothing is promoted: 65536 and more are infinite in float16, 1e-8 is zero.

op: vector_add
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    factor = tl.full((BLOCK,), alpha, dtype=tl.float32).to(y.dtype)
    out = x.to(tl.float32) + factor.to(tl.float32) * y.to(tl.float32)
    tl.store(out_ptr + at, out, mask=inside)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, y, out, float(alpha), n, BLOCK=1024)
    return out
