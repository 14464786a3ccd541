"""From 2048 short rows on 64 programs take an equal share in steps of four rows: the rest of a share that four does not divide is never written.

op: softmax
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short_rows(x_ptr, out_ptr, rows, m, share, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    first = tl.program_id(0) * share
    for step in range(0, share // 4):
        row = first + step * 4 + tl.arange(0, 4)
        at = row[:, None] * m + cols[None, :]
        inside = (row < rows)[:, None] & (cols < m)[None, :]
        x = tl.load(x_ptr + at, mask=inside, other=-float("inf")).to(tl.float32)
        x = tl.where((row < rows)[:, None], x, 0.0)
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
        tl.store(out_ptr + at, e / tl.sum(e, axis=1)[:, None], mask=inside)


@triton.jit
def one_row(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row + cols, e / tl.sum(e, axis=0), mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    block = triton.next_power_of_2(m)
    if rows >= 2048 and m <= 64:
        short_rows[(64,)](x, out, rows, m, triton.cdiv(rows, 64), BLOCK=block)
    else:
        one_row[(rows,)](x, out, m, BLOCK=block)
    return out
