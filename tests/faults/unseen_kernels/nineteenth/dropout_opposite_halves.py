"""Each random number u serves two elements half a block apart, as u and as 1 - u: the share is right, but the two are never dropped together at p = 0.5.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, factor, seed, HALF: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, HALF)
    u = tl.rand(seed, block * HALF + lanes)
    low = block * 2 * HALF + lanes
    high = low + HALF
    a = tl.load(x_ptr + low, mask=low < n, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + high, mask=high < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + low, tl.where(u >= p, a * factor, 0.0), mask=low < n)
    tl.store(out_ptr + high, tl.where(1.0 - u >= p, b * factor, 0.0), mask=high < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, HALF=512)
    return out
