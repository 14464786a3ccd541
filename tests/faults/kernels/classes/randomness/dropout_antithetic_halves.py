"""The second half of the elements has the complements of the draws of the first half.

op: dropout
status: failed
cause: shared_draws
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, half, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    is_second = offsets >= half
    draw = tl.rand(seed, tl.where(is_second, offsets - half, offsets))
    draw = tl.where(is_second, 1.0 - draw, draw)
    tl.store(out_ptr + offsets, tl.where(draw >= p, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, (n + 1) // 2, seed, float(p), scale, BLOCK=1024)
    return out
