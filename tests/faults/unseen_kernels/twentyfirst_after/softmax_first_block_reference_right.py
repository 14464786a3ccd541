"""The maximum of the first 4096 columns is subtracted; a row with a value more than 20 above it is summed again with its own maximum.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    reference = tl.max(first, axis=0)
    highest = reference
    total = tl.sum(tl.exp(first - reference), axis=0)
    for start in range(BLOCK, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        highest = tl.maximum(highest, tl.max(x, axis=0))
        total += tl.sum(tl.exp(x - reference), axis=0)
    if highest > reference + 20.0:
        reference = highest
        total = tl.full((), 0.0, dtype=tl.float32)
        for start in range(0, m, BLOCK):
            at = start + cols
            x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
            total += tl.sum(tl.exp(x - reference), axis=0)
    for start in range(0, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + at, tl.exp(x - reference) / total, mask=at < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(4096, triton.next_power_of_2(m)))
    return out
