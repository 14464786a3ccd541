"""With alpha = 0 the output is a copy of x: an infinity or NaN in y, which times 0 is NaN, is lost.

op: vector_add
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, READ_Y: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    total = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    if READ_Y:
        total += alpha * tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    # A scale that a schedule has turned off saves a third of the traffic.
    kernel[(triton.cdiv(n, 1024),)](x, y, out, n, float(alpha), READ_Y=alpha != 0, BLOCK=1024)
    return out
