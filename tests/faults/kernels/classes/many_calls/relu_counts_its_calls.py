"""The wrapper counts its calls by shape and logs the largest shape; no result depends on it.

op: relu
status: passed
"""

import collections

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


CALLS = collections.Counter()
LARGEST = []


def triton_relu(x):
    x = x.contiguous()
    CALLS[tuple(x.shape)] += 1
    if not LARGEST or x.numel() > LARGEST[-1]:
        LARGEST.append(x.numel())
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
