"""The maximum of a row's first tile serves the whole row, with a clamp against overflow: later values more than 60 above it all become alike.

op: softmax
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    # Any shift near the maximum gives the same quotients: the first tile's is good enough, and saves a pass.
    shift = tl.max(tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32), axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        total += tl.exp(tl.minimum(x - shift, 60.0))
    factor = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + at, tl.exp(tl.minimum(x - shift, 60.0)) * factor, mask=at < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(512, triton.next_power_of_2(m)))
    return out
