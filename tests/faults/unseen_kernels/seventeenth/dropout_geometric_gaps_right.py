"""The distances between dropped elements are drawn instead of one number for each element, as many as reach the end of the block.

op: dropout
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, seed, inverse_log, scale, BLOCK: tl.constexpr, DRAWS: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0).to(tl.int64) * BLOCK
    hits = tl.zeros((BLOCK,), dtype=tl.int32)
    last = -1
    used = 0
    # A step is 1 at least: BLOCK draws always do, so blocks are BLOCK draws apart.
    while last < BLOCK - 1:
        draws = tl.rand(seed, first + used + tl.arange(0, DRAWS))
        gaps = tl.floor(tl.log(tl.maximum(draws, 2.3e-10)) * inverse_log)
        steps = tl.minimum(gaps, 2.0 * BLOCK).to(tl.int32) + 1
        dropped = last + tl.cumsum(steps, axis=0)
        hits += tl.sum((dropped[:, None] == lanes[None, :]).to(tl.int32), axis=0)
        last = tl.max(dropped, axis=0)
        used += DRAWS
    x = tl.load(x_ptr + first + lanes, mask=first + lanes < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + first + lanes, tl.where(hits > 0, 0.0, x * scale), mask=first + lanes < n)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n, other=0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if p == 0:
        copy_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    else:
        kernel[(triton.cdiv(n, 1024),)](x, out, n, seed, 1.0 / math.log1p(-p), 1.0 / (1.0 - p), BLOCK=1024, DRAWS=128)
    return out
