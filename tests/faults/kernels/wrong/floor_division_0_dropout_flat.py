"""`cdiv` rounds down.

op: dropout
status: wrong_values
from: dropout_flat
operator: floor_division
seed: 0
was: triton.cdiv(out.numel(), 1024)
now: out.numel() // 1024
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[((out.numel() // 1024),)](x, out, out.numel(), p, seed, BLOCK=1024)
    return out
