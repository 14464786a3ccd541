"""The row's first element is subtracted instead of the maximum, in one pass; a sum that is not below 1e30 sends the row to the two passes with the maximum.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    guess = tl.load(x_ptr + row * cols).to(tl.float32)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        sums += tl.where(at < cols, tl.exp(x - guess), 0.0)
    # The guess itself adds 1, so the sum is never small; it may only be too large, or NaN.
    total = tl.sum(sums, axis=0)
    if not (total < 1e30):
        largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
            largest = tl.maximum(largest, x)
        guess = tl.max(largest, axis=0)
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
            sums += tl.where(at < cols, tl.exp(x - guess), 0.0)
        total = tl.sum(sums, axis=0)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * cols + at, tl.exp(x - guess) / total, mask=at < cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    kernel[(x.numel() // cols,)](x, out, cols, BLOCK=min(1024, triton.next_power_of_2(cols)))
    return out
