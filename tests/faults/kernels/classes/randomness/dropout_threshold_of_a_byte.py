"""A byte decides on an element, so a small p drops nothing and others are rounded.

op: dropout
status: failed
cause: wrong_rate
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "threshold"])
def kernel(x_ptr, out_ptr, n, seed, threshold, scale, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    words = tl.program_id(0) * BLOCK + lanes
    bits = tl.randint(seed, words)
    for part in tl.static_range(4):
        offsets = tl.program_id(0) * BLOCK * 4 + part * BLOCK + lanes
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        kept = ((bits >> (8 * part)) & 0xFF) >= threshold
        tl.store(out_ptr + offsets, tl.where(kept, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    kernel[(triton.cdiv(n, 1024),)](x, out, n, seed, round(p * 256), scale, BLOCK=256)
    return out
