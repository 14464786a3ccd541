"""With alpha 0 the second tensor is not read: its NaN and infinities should make NaN.

op: vector_add
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, BOTH: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    out = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    if BOTH:
        out += alpha * tl.load(y_ptr + at, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, out, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), alpha, BOTH=alpha != 0, BLOCK=1024)
    return out
