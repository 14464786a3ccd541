"""A block whose maximum is 40 below the running maximum, and which holds no NaN, is left out of the sum: a million of its values add less than a rounding.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        broken = tl.sum((x != x).to(tl.int32), axis=0)
        # exp(-40) is 4e-18: neither rescale nor exponentials.
        skip = (top < largest - 40.0) & (broken == 0)
        if skip == 0:
            new = tl.maximum(largest, top)
            shift = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
            largest = new
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + cols, tl.exp(x - largest) / total, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
