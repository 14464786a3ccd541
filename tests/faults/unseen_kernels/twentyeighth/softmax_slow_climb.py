"""The running sum is rescaled only where a tile's maximum leaps; many small steps upwards are never made up for, and exp overflows.

op: softmax
status: failed
cause: stale_base
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, LEAP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    out_ptr += row * n_cols
    top = -float("inf")  # the largest value so far
    base = 0.0  # what exp subtracts; it may lie a little below top: exp has room up to 88
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        peak = tl.max(x, axis=0)
        # Rescaling is seldom worth it: only where the maximum leaps.
        new_base = tl.where(peak > top + LEAP, peak, base)
        total *= tl.where(total == 0.0, 1.0, tl.exp(base - new_base))
        base = new_base
        top = tl.maximum(top, peak)
        total += tl.sum(tl.exp(x - base), axis=0)
    scale = 1.0 / total
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - base) * scale, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    if x.numel():
        softmax_kernel[(x.numel() // n_cols,)](x, out, n_cols, LEAP=8.0, BLOCK=256, num_warps=2)
    return out
