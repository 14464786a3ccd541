"""The maximum of the first 4096 columns is subtracted, and the rest is limited to 60 above it: wrong if a later block is farther above.

op: softmax
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def distance(x, reference):
    # the first block is a large sample of the row: no other one is far above it
    d = x - reference
    return tl.where(d > 60.0, 60.0, d)


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + base + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    reference = tl.max(first, axis=0)
    total = tl.sum(tl.exp(distance(first, reference)), axis=0)
    for start in range(BLOCK, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(distance(x, reference)), axis=0)
    for start in range(0, m, BLOCK):
        at = start + cols
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + at, tl.exp(distance(x, reference)) / total, mask=at < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(4096, triton.next_power_of_2(m)))
    return out
