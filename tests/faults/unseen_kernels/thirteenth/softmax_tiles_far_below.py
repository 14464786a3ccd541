"""A tile whose largest value is 11 below the running maximum adds nothing to the sum: each of its terms is below 2e-5, but a long row has thousands of them.

op: softmax
status: failed
cause: values
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
        # exp(-11) is below the rounding of a half type: such a tile costs no exponentials.
        if not (tl.max(x, axis=0) < largest - 11.0):
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
