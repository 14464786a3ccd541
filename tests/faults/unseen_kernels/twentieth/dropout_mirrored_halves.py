"""A random number u serves one element of the first half, and 1 - u one of the second: every share is right, but the halves' masks depend on each other.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, half, p, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u = tl.rand(seed, at)
    first = at < half
    second = first & (at + half < n)
    a = tl.load(x_ptr + at, mask=first, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + half + at, mask=second, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(u >= p, a * scale, 0.0), mask=first)
    # 1 - u is as uniform as u: half the random numbers will do.
    tl.store(out_ptr + half + at, tl.where(1.0 - u >= p, b * scale, 0.0), mask=second)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    half = triton.cdiv(n, 2)
    kernel[(triton.cdiv(half, 1024),)](x, out, n, half, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
