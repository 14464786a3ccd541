"""The running sum is rescaled where a block rises by more than 8 over the blocks before it, not over the exponent's base: a row that rises slowly overflows.

op: softmax
status: failed
cause: drift
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * m
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start_of_row + lanes, mask=lanes < m, other=-float("inf")).to(tl.float32)
    peak = tl.maximum(tl.max(x, axis=0), -3.4028234663852886e38)  # finite, also of a block of -inf
    base = peak
    total = tl.exp(x - base)
    for start in range(BLOCK, m, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + start_of_row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        # Terms of up to e^8 lose nothing in float32: rescale only where the maximum jumps.
        if top - peak > 8.0:
            total *= tl.exp(base - top)
            base = top
        peak = tl.maximum(peak, top)
        total += tl.exp(x - base)
    inverse = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + start_of_row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + start_of_row + cols, tl.exp(x - base) * inverse, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        m = x.shape[-1]
        kernel[(x.numel() // m,)](x, out, m, BLOCK=min(256, triton.next_power_of_2(m)))
    return out
