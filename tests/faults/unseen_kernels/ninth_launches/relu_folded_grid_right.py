"""Blocks are spread evenly over a grid of two dimensions.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl

WIDEST = 128


@triton.jit
def kernel(x_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    block = tl.program_id(1) * width + tl.program_id(0)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    a = x.contiguous()
    out = torch.empty_like(a)
    n = a.numel()
    blocks = triton.cdiv(n, 4096)
    lines = triton.cdiv(blocks, WIDEST)
    width = triton.cdiv(blocks, lines)
    kernel[(width, lines)](a, out, n, width, BLOCK=4096)
    return out
