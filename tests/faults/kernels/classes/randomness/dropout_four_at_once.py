"""rand4x: four draws from one number, each for a quarter of the block.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def store_part(x_ptr, out_ptr, offsets, draw, n, p):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.where(draw >= p, x / (1.0 - p), 0.0), mask=mask)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK * 4
    lanes = tl.arange(0, BLOCK)
    d0, d1, d2, d3 = tl.rand4x(seed, tl.program_id(0) * BLOCK + lanes)
    store_part(x_ptr, out_ptr, start + lanes, d0, n, p)
    store_part(x_ptr, out_ptr, start + BLOCK + lanes, d1, n, p)
    store_part(x_ptr, out_ptr, start + 2 * BLOCK + lanes, d2, n, p)
    store_part(x_ptr, out_ptr, start + 3 * BLOCK + lanes, d3, n, p)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), p, seed, BLOCK=256)
    return out
