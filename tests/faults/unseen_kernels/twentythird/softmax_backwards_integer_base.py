"""Right: rows are walked from their end, against a base that is a whole number and follows the maximum only where it lags by 16.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, n_blocks, BLOCK: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * m
    lanes = tl.arange(0, BLOCK)
    base = -3.4028234663852886e38  # the lowest number, not -inf: -inf less -inf is NaN
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n_blocks):
        cols = (n_blocks - 1 - i) * BLOCK + lanes
        x = tl.load(x_ptr + start_of_row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        # All terms are below e^16; no sum of 2**31 of them comes near the end of float32.
        if top - base > 16.0:
            new_base = tl.ceil(top)
            total *= tl.exp(base - new_base)
            base = new_base
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
        block = min(512, triton.next_power_of_2(m))
        kernel[(x.numel() // m,)](x, out, m, triton.cdiv(m, block), BLOCK=block)
    return out
