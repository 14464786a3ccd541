"""The factor log2(e) comes before the maximum is subtracted: the difference of two rounded products is off by a step of float32 where a row lies at a million.

op: softmax
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, tl.max(x * 1.4426950408889634, axis=0))
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=-float("inf")).to(tl.float32)
        total += tl.exp2(x * 1.4426950408889634 - largest)
    factor = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + at, mask=at < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * m + at, tl.exp2(x * 1.4426950408889634 - largest) * factor, mask=at < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
