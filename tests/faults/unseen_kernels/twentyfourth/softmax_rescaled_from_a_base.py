"""Right: a row's powers refer to no maximum but to a base that may lie 6 below it, and the row is written backwards.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def finite(base):
    # With minus infinity as the base, -inf - -inf would be NaN.
    return tl.where(base == -float("inf"), 0.0, base)


@triton.jit
def kernel(x_ptr, out_ptr, m, JUMP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    base = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        peak = tl.max(x, axis=0)
        # A power is at most exp(JUMP): far from an overflow, and a rescaling is rare.
        if peak - base > JUMP:
            total *= tl.exp2((base - peak) * LOG2_E)
            base = peak
        total += tl.sum(tl.exp2((x - finite(base)) * LOG2_E), axis=0)
    scale = 1.0 / total
    last = (m - 1) // BLOCK * BLOCK
    for back in range(0, m, BLOCK):  # what was read last is still in the cache
        cols = last - back + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        y = tl.exp2((x - finite(base)) * LOG2_E) * scale
        tl.store(out_ptr + cols, y, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1] if x.dim() else 1
        BLOCK = min(512, triton.next_power_of_2(m))
        kernel[(x.numel() // m,)](x, out, m, JUMP=6.0, BLOCK=BLOCK)
    return out
