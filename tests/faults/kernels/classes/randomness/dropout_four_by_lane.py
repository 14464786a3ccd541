"""Element i has the number i % 4 of the call i // 4, picked by comparisons.

op: dropout
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a, b, c, d = tl.rand4x(seed, offsets // 4)
    lane = offsets % 4
    draw = tl.where(lane == 0, a, tl.where(lane == 1, b, tl.where(lane == 2, c, d)))
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, tl.where(draw >= p, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    if p == 0:
        return x.clone()
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 512),)](
        x, out, n, seed, float(p), 1.0 / (1.0 - p) if p < 1 else 0.0, BLOCK=512
    )
    return out
