"""Rows are divided by their largest element first, also those of zeros.

op: rms_norm
status: failed
cause: wrong_formula
held_out: yes
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    largest = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
    top = tl.max(largest, axis=0)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=0.0).to(tl.float32)
        squares += (x / top) * (x / top)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps / (top * top)) / top
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    kernel[(rows.shape[0],)](rows, weight.contiguous(), out, rows.shape[1], eps, BLOCK=512)
    return out.view(x.shape)
