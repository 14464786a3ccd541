"""Four numbers of one call serve four runs of a block; the counter is unique in the whole tensor.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def run(x_ptr, out_ptr, at, n, u, p, scale):
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, tl.where(u >= p, x * scale, 0.0), mask=at < n)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, RUN: tl.constexpr):
    lanes = tl.arange(0, RUN)
    block = tl.program_id(0)
    u0, u1, u2, u3 = tl.rand4x(seed, block * RUN + lanes)
    at = block.to(tl.int64) * 4 * RUN + lanes
    run(x_ptr, out_ptr, at, n, u0, p, scale)
    run(x_ptr, out_ptr, at + RUN, n, u1, p, scale)
    run(x_ptr, out_ptr, at + 2 * RUN, n, u2, p, scale)
    run(x_ptr, out_ptr, at + 3 * RUN, n, u3, p, scale)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, RUN=256)
    return out
