"""A block draws one number and goes on by golden steps: every block drops the same share, and neighbours depend on each other.

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
    steps = tl.arange(0, BLOCK)
    at = block.to(tl.int64) * BLOCK + steps
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    u = tl.rand(seed, block) + steps * 0.6180339887498949
    u = u - tl.floor(u)
    tl.store(out_ptr + at, tl.where(u >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 256),)](x, out, n, p, 1 / (1 - p), seed, BLOCK=256)
    return out
