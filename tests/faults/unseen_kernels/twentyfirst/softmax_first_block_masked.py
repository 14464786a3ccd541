"""Rows of more than 4096 are reduced block by block: a row whose first block is all -inf becomes NaN.

op: softmax
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one_block(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * cols
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + base + col, mask=col < cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + base + col, e / tl.sum(e, axis=0), mask=col < cols)


@triton.jit
def online(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * cols
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.zeros((), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + col, mask=col < cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + col, mask=col < cols, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + base + col, tl.exp(x - largest) / total, mask=col < cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    rows = x.numel() // cols
    if cols <= 4096:
        one_block[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
    else:
        online[(rows,)](x, out, cols, BLOCK=4096)
    return out
