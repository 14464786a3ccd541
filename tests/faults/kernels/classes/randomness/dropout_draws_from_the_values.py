"""The counter is the bit pattern of the element, so equal elements share a draw.

op: dropout
status: failed
cause: shared_draws
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    kept = tl.rand(seed, bits ^ (offsets & 1)) >= p
    tl.store(out_ptr + offsets, tl.where(kept, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, seed, float(p), scale, BLOCK=1024)
    return out
