"""Four blocks share a counter, and each has a number of its own.

op: dropout
status: passed
held_out: yes
drawn: no
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def apply(x_ptr, out_ptr, places, n, draw, p):
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, tl.where(draw >= p, x / (1.0 - p), 0.0), mask=mask)


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    pid = tl.program_id(0)
    first, second, third, fourth = tl.rand4x(seed, pid * BLOCK + lanes)
    start = pid * BLOCK * 4 + lanes
    apply(x_ptr, out_ptr, start, n, first, p)
    apply(x_ptr, out_ptr, start + BLOCK, n, second, p)
    apply(x_ptr, out_ptr, start + 2 * BLOCK, n, third, p)
    apply(x_ptr, out_ptr, start + 3 * BLOCK, n, fourth, p)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 4 * 256),)](x, out, out.numel(), p, seed, BLOCK=256)
    return out
