"""The seed is reduced modulo 65,521, so seeds that far apart have one mask.

op: dropout
status: failed
cause: shared_draws
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    kept = tl.rand(seed, offsets) >= p
    tl.store(out_ptr + offsets, tl.where(kept, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, seed % 65521, float(p), scale, BLOCK=1024)
    return out
