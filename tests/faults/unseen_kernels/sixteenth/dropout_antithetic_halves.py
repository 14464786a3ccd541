"""One random number serves two elements, u in the first half and 1 - u in the second: at p = 0.5 exactly one of each such pair is dropped.

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
    x = tl.load(x_ptr + at, mask=first, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(u >= p, x * scale, 0.0), mask=first)
    second = first & (at + half < n)
    y = tl.load(x_ptr + half + at, mask=second, other=0.0).to(tl.float32)
    tl.store(out_ptr + half + at, tl.where(1.0 - u >= p, y * scale, 0.0), mask=second)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    half = triton.cdiv(x.numel(), 2)
    kernel[(triton.cdiv(half, 1024),)](x, out, x.numel(), half, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
