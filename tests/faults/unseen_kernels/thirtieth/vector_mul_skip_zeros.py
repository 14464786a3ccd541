"""y is not read where a block of x is all zeros: a NaN or Inf there is lost.

op: vector_mul
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    # Masks and the outputs of a ReLU have long runs of zeros: a third of the traffic is saved.
    if tl.sum((x != 0.0).to(tl.int32), axis=0) > 0:
        y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, x * y, mask=mask)
    else:
        tl.store(out_ptr + at, x, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 512),)](x, y, out, n, BLOCK=512)
    return out
