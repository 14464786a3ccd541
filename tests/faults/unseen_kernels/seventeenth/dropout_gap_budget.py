"""Below p = 0.1 the distances between dropped elements are drawn, 64 a block of 1024: with p over 0.06 the end of a block is never dropped.

op: dropout
status: failed
cause: random
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def gaps_kernel(x_ptr, out_ptr, n, seed, inverse_log, scale, BLOCK: tl.constexpr, DRAWS: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + lanes
    draws = tl.rand(seed, tl.program_id(0) * DRAWS + tl.arange(0, DRAWS))
    gaps = tl.floor(tl.log(tl.maximum(draws, 2.3e-10)) * inverse_log)
    steps = tl.minimum(gaps, 2.0 * BLOCK).to(tl.int32) + 1
    dropped = tl.cumsum(steps, axis=0) - 1
    hits = tl.sum((dropped[:, None] == lanes[None, :]).to(tl.int32), axis=0)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(hits > 0, 0.0, x * scale), mask=at < n)


@triton.jit
def kernel(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    scale = 1.0 / (1.0 - p)
    if 0.0 < p < 0.1:
        # Few are dropped: one draw for each of them instead of one for each element.
        gaps_kernel[grid](x, out, n, seed, 1.0 / math.log1p(-p), scale, BLOCK=1024, DRAWS=64)
    else:
        kernel[grid](x, out, n, seed, float(p), scale, BLOCK=1024)
    return out
