"""Each block draws from the stream seed + block: seed 1 has the mask of seed 0, one block further on.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    at = block.to(tl.int64) * BLOCK + lanes
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    # A stream for each block: the counters stay below BLOCK, so they never leave 32 bits.
    u = tl.rand(seed + block, lanes)
    tl.store(out_ptr + at, tl.where(u >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=256)
    return out
