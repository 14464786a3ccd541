"""The reference moves only where a block's maximum is 8 above the last one, not above the reference: slow rises overflow.

op: softmax
status: failed
cause: online
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, SLACK: tl.constexpr, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * m
    out_ptr += tl.program_id(0).to(tl.int64) * m
    lanes = tl.arange(0, BLOCK)
    shift = -float("inf")
    peak = -float("inf")
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        x = tl.load(x_ptr + start + lanes, mask=lanes < m - start, other=-float("inf"))
        x = x.to(tl.float32)
        top = tl.max(x, axis=0)
        # A small step is no reason to rescale: float32 has room for exp(SLACK).
        if top > peak + SLACK:
            total *= tl.exp(shift - top)
            shift = top
        peak = tl.maximum(peak, top)
        total += tl.exp(x - tl.where(shift == -float("inf"), 0.0, shift))
    shift = tl.where(shift == -float("inf"), 0.0, shift)
    rest = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        mask = lanes < m - start
        x = tl.load(x_ptr + start + lanes, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + start + lanes, tl.exp(x - shift) * rest, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    block = min(1024, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, out, m, SLACK=8.0, BLOCK=block)
    return out
