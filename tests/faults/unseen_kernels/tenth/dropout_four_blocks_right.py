"""Each block has its own counters under one seed: a call of Philox gives four numbers for four blocks.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dropped(x_ptr, out_ptr, offsets, n, p, number):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.where(number >= p, x / (1.0 - p), 0.0), mask=mask)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    first = block * 4 * BLOCK + lanes
    a, b, c, d = tl.rand4x(seed, block * BLOCK + lanes)
    dropped(x_ptr, out_ptr, first, n, p, a)
    dropped(x_ptr, out_ptr, first + BLOCK, n, p, b)
    dropped(x_ptr, out_ptr, first + 2 * BLOCK, n, p, c)
    dropped(x_ptr, out_ptr, first + 3 * BLOCK, n, p, d)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 1024),)](x, out, out.numel(), p, seed, BLOCK=256)
    return out
