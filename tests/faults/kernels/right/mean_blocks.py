"""Rows in blocks of 128, scaled once at the end.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) * scale)


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, 1.0 / n_cols, BLOCK=128)
    return out
