"""Aligned tensors take four random numbers of a call, others one, so that the mask depends on the address and not on the seed alone.

op: dropout
status: failed
cause: determinism
"""

import torch
import triton
import triton.language as tl


@triton.jit
def wide_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    start = tl.program_id(0) * BLOCK * 4 + lanes
    r0, r1, r2, r3 = tl.rand4x(seed, tl.program_id(0) * BLOCK + lanes)
    x0 = tl.load(x_ptr + start, mask=start < n).to(tl.float32)
    x1 = tl.load(x_ptr + start + BLOCK, mask=start + BLOCK < n).to(tl.float32)
    x2 = tl.load(x_ptr + start + 2 * BLOCK, mask=start + 2 * BLOCK < n).to(tl.float32)
    x3 = tl.load(x_ptr + start + 3 * BLOCK, mask=start + 3 * BLOCK < n).to(tl.float32)
    tl.store(out_ptr + start, tl.where(r0 >= p, x0 * scale, 0.0), mask=start < n)
    tl.store(out_ptr + start + BLOCK, tl.where(r1 >= p, x1 * scale, 0.0), mask=start + BLOCK < n)
    tl.store(out_ptr + start + 2 * BLOCK, tl.where(r2 >= p, x2 * scale, 0.0), mask=start + 2 * BLOCK < n)
    tl.store(out_ptr + start + 3 * BLOCK, tl.where(r3 >= p, x3 * scale, 0.0), mask=start + 3 * BLOCK < n)


@triton.jit
def narrow_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=offsets < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    if x.data_ptr() % 16 == 0:
        wide_kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=256)
    else:
        narrow_kernel[(triton.cdiv(n, 512),)](x, out, n, p, 1.0 / (1.0 - p), seed, BLOCK=512)
    return out
