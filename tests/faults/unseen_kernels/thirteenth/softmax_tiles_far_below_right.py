"""A tile whose values are all 104 below the running maximum, or -inf, adds nothing to the sum: their exponentials are zero in float32.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    largest = -float("inf")
    total = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        counts = ((x >= largest - 104.0) & (x > -float("inf"))) | (x != x)
        if tl.max(counts.to(tl.int32), axis=0) > 0:
            new = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - largest) / total, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
