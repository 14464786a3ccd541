"""Kept elements are divided by the larger of p and 1 - p, which is wrong above a half.

op: dropout
status: failed
cause: wrong_formula
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    keep = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x * scale, 0.0), mask=offsets < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 1.0 / max(p, 1.0 - p), seed, BLOCK=1024)
    return out
