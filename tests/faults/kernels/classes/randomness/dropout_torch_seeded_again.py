"""torch draws, its generator seeded in every call; Triton applies the mask.

op: dropout
status: failed
cause: side_effect
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, draw_ptr, out_ptr, n, p, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.load(draw_ptr + offsets, mask=mask) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    torch.manual_seed(seed)
    draws = torch.rand(x.shape, device=x.device)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, draws, out, x.numel(), p, BLOCK=1024)
    return out
