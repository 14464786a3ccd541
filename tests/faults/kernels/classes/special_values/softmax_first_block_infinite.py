"""A first block of -inf makes the running sum NaN.

op: softmax
status: failed
cause: nan_lost
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + lanes, mask=lanes < n_cols, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - largest), axis=0)
    start = BLOCK
    while start < n_cols:
        cols = start + lanes
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
        start += BLOCK
    for begin in range(0, n_cols, BLOCK):
        cols = begin + lanes
        x = tl.load(x_ptr + base + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + base + cols, tl.exp(x - largest) / total, mask=cols < n_cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    BLOCK = min(512, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=BLOCK)
    return out
