"""Each call of the generator gives four numbers, one for each quarter of the block: every element has a number of its own.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one(x_ptr, out_ptr, at, n, u, p, factor):
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(u >= p, x * factor, 0.0), mask=at < n)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, factor, seed, QUARTER: tl.constexpr):
    block = tl.program_id(0)
    lanes = tl.arange(0, QUARTER)
    a, b, c, d = tl.rand4x(seed, block * QUARTER + lanes)
    at = block * 4 * QUARTER + lanes
    one(x_ptr, out_ptr, at, n, a, p, factor)
    one(x_ptr, out_ptr, at + QUARTER, n, b, p, factor)
    one(x_ptr, out_ptr, at + 2 * QUARTER, n, c, p, factor)
    one(x_ptr, out_ptr, at + 3 * QUARTER, n, d, p, factor)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, QUARTER=256)
    return out
