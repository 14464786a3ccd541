"""Four numbers a lane serve four blocks of a program; p is compared with what is left of 1.

op: dropout
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, keep, scale, seed, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(0).to(tl.int64) * 4 * BLOCK + tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, lanes)
    x = tl.load(x_ptr + first, mask=first < n).to(tl.float32)
    tl.store(out_ptr + first, tl.where(r0 < keep, x * scale, 0.0), mask=first < n)
    second = first + BLOCK
    x = tl.load(x_ptr + second, mask=second < n).to(tl.float32)
    tl.store(out_ptr + second, tl.where(r1 < keep, x * scale, 0.0), mask=second < n)
    third = first + 2 * BLOCK
    x = tl.load(x_ptr + third, mask=third < n).to(tl.float32)
    tl.store(out_ptr + third, tl.where(r2 < keep, x * scale, 0.0), mask=third < n)
    fourth = first + 3 * BLOCK
    x = tl.load(x_ptr + fourth, mask=fourth < n).to(tl.float32)
    tl.store(out_ptr + fourth, tl.where(r3 < keep, x * scale, 0.0), mask=fourth < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    # A number may be rounded up to 1, so that p = 0 needs a bound above 1.
    keep = 1.0 - p if p > 0 else 2.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, keep, 1.0 / (1.0 - p), seed, BLOCK=256)
    return out
