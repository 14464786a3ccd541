"""The sum is rescaled only where the maximum jumps, but jumps are mask from tile to tile: a slow climb overflows.

op: softmax
status: failed
cause: online
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
    base = tl.full((), -float("inf"), tl.float32)  # what all powers so far refer to
    peak = tl.full((), -float("inf"), tl.float32)
    total = tl.zeros((), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(x, axis=0))
        # Powers may well be larger than one: only a large step is worth a new base.
        if higher - peak > JUMP:
            total *= tl.exp2((base - higher) * LOG2_E)
            base = higher
        peak = higher
        total += tl.sum(tl.exp2((x - finite(base)) * LOG2_E), axis=0)
    scale = 1.0 / total
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
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
