"""Rows that are contiguous in themselves are read at the stride of the last dimension but one, for all outer dimensions: a slice of three dimensions has gaps between its batches.

op: softmax
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = x_ptr + row * stride
    largest = -float("inf")
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - largest), axis=0)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * m + at, tl.exp(x - largest) / total, mask=at < m)


def triton_softmax(x):
    if x.stride(-1) != 1:
        x = x.contiguous()
    m = x.shape[-1]
    stride = x.stride(-2) if x.dim() > 1 else m
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(x.numel() // m,)](x, out, m, stride, BLOCK=min(4096, triton.next_power_of_2(m)))
    return out
