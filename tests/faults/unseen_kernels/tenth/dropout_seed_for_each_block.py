"""Block i draws with seed + i: the mask of the next seed is this one moved by a block.

op: dropout
status: failed
cause: randomness
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    offsets = block.to(tl.int64) * BLOCK + lanes
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed + block, lanes) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), p, seed, BLOCK=1024)
    return out
