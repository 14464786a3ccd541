"""One number u serves two elements, half the tensor apart, as u and 1 - u: for p = 0.5 the second half is the opposite of the first.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, half, p, scale, seed, BLOCK: tl.constexpr):
    low = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    high = low + half
    in_low = low < half
    in_high = in_low & (high < n)
    # 1 - u is as uniform as u: half the random numbers are enough.
    u = tl.rand(seed, low)
    x = tl.load(x_ptr + low, mask=in_low, other=0.0).to(tl.float32)
    tl.store(out_ptr + low, tl.where(u >= p, x * scale, 0.0), mask=in_low)
    x = tl.load(x_ptr + high, mask=in_high, other=0.0).to(tl.float32)
    tl.store(out_ptr + high, tl.where(1.0 - u >= p, x * scale, 0.0), mask=in_high)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    half = (n + 1) // 2
    kernel[(triton.cdiv(half, 512),)](x, out, n, half, p, 1.0 / (1.0 - p), seed, BLOCK=512)
    return out
