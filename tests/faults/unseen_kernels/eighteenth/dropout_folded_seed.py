"""The seed's upper half is folded onto its lower half: seeds with equal halves all give the mask of seed 0, and swapped halves give one mask.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(tl.rand(seed, at) >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    # 32 bits of key, of which every bit of the seed has a part.
    key = (seed ^ (seed >> 32)) & 0xFFFFFFFF
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), key, p, 1.0 / (1.0 - p), BLOCK=1024)
    return out
