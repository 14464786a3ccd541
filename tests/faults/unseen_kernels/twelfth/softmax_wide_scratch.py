"""Rows over 1,024 elements go through a float32 scratch, which for float32 is the input itself: the input is overwritten.

op: softmax
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def one_block(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def many_blocks(work_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    tops = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        tops = tl.maximum(tops, tl.load(work_ptr + base + at, mask=at < n_cols, other=-float("inf")))
    top = tl.max(tops, axis=0)
    totals = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        x = tl.load(work_ptr + base + at, mask=at < n_cols, other=-float("inf"))
        numerator = tl.exp(x - top)
        tl.store(work_ptr + base + at, numerator, mask=at < n_cols)
        totals += numerator
    total = tl.sum(totals, axis=0)
    for start in range(0, n_cols, BLOCK):
        at = start + cols
        numerator = tl.load(work_ptr + base + at, mask=at < n_cols)
        tl.store(out_ptr + base + at, numerator / total, mask=at < n_cols)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    grid = (x.numel() // n_cols,)
    if n_cols <= 1024:
        one_block[grid](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    else:
        work = x.to(torch.float32)
        many_blocks[grid](work, out, n_cols, BLOCK=1024)
    return out
