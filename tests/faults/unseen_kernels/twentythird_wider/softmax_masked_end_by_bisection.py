"""If a row ends in -inf, the end of its finite part is found by bisection: a -inf before that end, where the search looks, ends the row too early.

op: softmax
status: failed
cause: assumption
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    low, high = 0, m
    if tl.load(x_ptr + row + m - 1).to(tl.float32) == -float("inf"):
        # A causal row: finite scores, then masked ones. A few loads say where, the rest isn't read.
        for _ in range(STEPS):
            middle = (low + high) // 2
            there = low < high
            x = tl.load(x_ptr + row + middle, mask=there, other=0.0).to(tl.float32)
            masked = x == -float("inf")
            low = tl.where(there & (masked == 0), middle + 1, low)
            high = tl.where(there & masked, middle, high)
    length = high
    largest = -float("inf")
    total = 0.0
    for start in range(0, length, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < length, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), axis=0)
        largest = new
    base = tl.where(largest == -float("inf"), 0.0, largest)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < length, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row + cols, tl.exp(x - base) / total, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, out, m, STEPS=m.bit_length(), BLOCK=min(512, triton.next_power_of_2(m)))
    return out
