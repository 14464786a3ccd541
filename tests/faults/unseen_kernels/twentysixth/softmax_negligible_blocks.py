"""Blocks whose every term is below half a unit of the dtype are left out of the sum, but thousands of them add up.

op: softmax
status: failed
cause: negligible
"""

import torch
import triton
import triton.language as tl

# exp(-margin) is less than half a unit in the last place of a sum of at least one.
MARGIN = {torch.float32: 17.5, torch.float16: 9.0, torch.bfloat16: 9.0}


@triton.jit
def kernel(x_ptr, out_ptr, m, margin, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    top = -float("inf")
    total = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        here = tl.max(x, axis=0)
        # Nothing in this block can change the sum: save the exponentials.
        if not (here < top - margin):
            new = tl.maximum(top, here)
            base = tl.where(new == -float("inf"), 0.0, new)
            total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base), axis=0)
            top = new
    rest = 1.0 / total
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - top) * rest
        tl.store(out_ptr + cols, y.to(out_ptr.dtype.element_ty), mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    block = min(1024, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, out, m, MARGIN[x.dtype], BLOCK=block)
    return out
