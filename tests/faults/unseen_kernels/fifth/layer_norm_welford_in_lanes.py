"""Nothing wrong: every lane has Welford's mean and sum of squares of its own columns; the lanes are joined by Chan's formula.

op: layer_norm
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, n_cols, x_row, x_col, w_step, b_step, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row
    out_ptr += row * n_cols
    count = tl.zeros((BLOCK,), dtype=tl.float32)
    mean = tl.zeros((BLOCK,), dtype=tl.float32)
    m2 = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=inside, other=0.0).to(tl.float32)
        count += inside.to(tl.float32)
        d = tl.where(inside, x - mean, 0.0)
        mean += d / tl.maximum(count, 1.0)
        m2 += tl.where(inside, d * (x - mean), 0.0)
    whole = tl.sum(mean * count, axis=0) / n_cols
    d = mean - whole
    # a lane without elements has no part; NaN stays in those that have
    var = (tl.sum(m2, axis=0) + tl.sum(tl.where(count > 0, d * d * count, 0.0), axis=0)) / n_cols
    inverse = 1.0 / tl.sqrt(var + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        x = tl.load(x_ptr + cols * x_col, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols * w_step, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols * b_step, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - whole) * inverse * w + b, mask=inside)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    n_cols = x.shape[-1]
    rows = x if x.dim() == 2 else x.contiguous().view(-1, n_cols)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(len(rows),)](
        rows, weight, bias, out, n_cols, *rows.stride(), weight.stride(0), bias.stride(0), eps,
        BLOCK=256,
    )
    return out
