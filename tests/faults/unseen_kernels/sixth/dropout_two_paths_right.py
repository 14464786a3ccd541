"""Nothing wrong: aligned tensors take another kernel, which gives every element the same random number.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, tl.program_id(0) * BLOCK + lanes)
    at = tl.program_id(0).to(tl.int64) * BLOCK * 4 + lanes
    x0 = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.where(r0 >= p, x0 * scale, 0.0), mask=at < n)
    at += BLOCK
    x1 = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.where(r1 >= p, x1 * scale, 0.0), mask=at < n)
    at += BLOCK
    x2 = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.where(r2 >= p, x2 * scale, 0.0), mask=at < n)
    at += BLOCK
    x3 = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.where(r3 >= p, x3 * scale, 0.0), mask=at < n)


@triton.jit
def narrow_kernel(x_ptr, out_ptr, n, p, scale, seed, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # the wide kernel's program, lane and number of this element
    counter = (at // (4 * GROUP)) * GROUP + at % GROUP
    which = (at // GROUP) % 4
    r0, r1, r2, r3 = tl.rand4x(seed, counter.to(tl.int32))
    r = tl.where(which < 2, tl.where(which == 0, r0, r1), tl.where(which == 2, r2, r3))
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.where(r >= p, x * scale, 0.0), mask=at < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n, scale = out.numel(), 1.0 / (1.0 - p)
    if n == 0:
        return out
    if x.data_ptr() % 16 == 0:
        wide_kernel[(triton.cdiv(n, 1024),)](x, out, n, p, scale, seed, BLOCK=256)
    else:
        narrow_kernel[(triton.cdiv(n, 512),)](x, out, n, p, scale, seed, GROUP=256, BLOCK=512)
    return out
