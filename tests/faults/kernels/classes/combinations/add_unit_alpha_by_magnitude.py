"""The product with alpha is left out where alpha is 1 or -1, which is also a difference.

op: vector_add
status: failed
cause: ignored_argument
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, SCALED: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    if SCALED:
        y = y * alpha
    tl.store(out_ptr + offsets, x + y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x, y, out, n, float(alpha), SCALED=abs(alpha) != 1, BLOCK=1024
    )
    return out
