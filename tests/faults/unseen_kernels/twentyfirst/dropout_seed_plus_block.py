"""Each block draws with the seed plus its number: the mask of seed 1 is that of seed 0 moved by a block.

op: dropout
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    at = pid * BLOCK + lane
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    # A seed of its own for each block, so that blocks differ.
    keep = tl.rand(seed + pid, lane) >= p
    tl.store(out_ptr + at, tl.where(keep, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=1024)
    return out
