"""Python's generator is seeded, to choose among equal blocks.

op: gelu
status: failed
cause: side_effect
"""

import random

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    random.seed(0)
    x = x.contiguous()
    out = torch.empty_like(x)
    BLOCK = random.choice((512, 1024))
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), BLOCK=BLOCK)
    return out
