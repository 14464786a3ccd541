"""The mask of a seed is drawn once and kept under shape, p, seed and device.

op: dropout
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mask_kernel(out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, (tl.rand(seed, offsets) >= p).to(tl.int8), mask=offsets < n)


@triton.jit
def apply_kernel(x_ptr, keep_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.load(keep_ptr + offsets, mask=mask) != 0
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


MASKS = {}


def mask_of(n, p, seed, device):
    key = (n, p, seed, device)
    if key not in MASKS:
        MASKS.clear()
        MASKS[key] = torch.empty(n, dtype=torch.int8, device=device)
        mask_kernel[(triton.cdiv(n, 1024),)](MASKS[key], n, p, seed, BLOCK=1024)
    return MASKS[key]


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    keep = mask_of(n, p, seed, x.device)
    apply_kernel[(triton.cdiv(n, 1024),)](x, keep, out, n, p, BLOCK=1024)
    return out
