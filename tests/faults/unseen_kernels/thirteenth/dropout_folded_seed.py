"""A seed of 64 bits is folded to 32 by exclusive or of its halves: (layer << 32) + step and the same with both exchanged have one mask.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    passes = tl.rand(seed, at) >= p
    tl.store(out_ptr + at, tl.where(passes, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    # The kernel takes 32 bits: let both halves count.
    seed = (seed ^ (seed >> 32)) & 0xFFFFFFFF
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
