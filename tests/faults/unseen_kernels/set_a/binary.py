"""The row is scaled to base two before the maximum is subtracted, and far from zero the scaled numbers are rounded coarsely.

op: softmax
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def _one_block(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    m = cols < n_cols
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        at = row * n_cols + cols.to(tl.int64)
        z = tl.load(x_ptr + at, mask=m, other=-float("inf")).to(tl.float32) * LOG2E
        e = tl.exp2(z - tl.max(z, axis=0))
        tl.store(out_ptr + at, e * (1.0 / tl.sum(e, axis=0)), mask=m)


@triton.jit
def _online(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        z = tl.load(x_ptr + base + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32) * LOG2E
        new = tl.where(z > top, z, tl.where(z == z, top, z))
        keep = tl.where(top == -float("inf"), 0.0, tl.exp2(top - new))
        total = total * keep + tl.where(z == -float("inf"), 0.0, tl.exp2(z - new))
        top = new
    peak = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(tl.where(top == -float("inf"), 0.0, total * tl.exp2(top - peak)), axis=0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        m = cols < n_cols
        z = tl.load(x_ptr + base + cols, mask=m, other=-float("inf")).to(tl.float32) * LOG2E
        tl.store(out_ptr + base + cols, tl.exp2(z - peak) * scale, mask=m)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    if n_cols <= 4096:
        _one_block[(min(n_rows, 528),)](rows, out, n_rows, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    else:
        _online[(n_rows,)](rows, out, n_cols, BLOCK=1024)
    return out.view(x.shape)
