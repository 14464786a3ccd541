"""A block whose maximum is 8 below the running maximum is left out of the sum, though thousands of such values add up to more than the peak.

op: softmax
status: failed
cause: values
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
        # exp(-8) is below the resolution of a half: neither rescale nor exponentials.
        if (top < largest - 8.0) == 0:
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
