"""Padded lanes add mean squared to the variance and are taken off again, which cancels where the mean is large.

op: layer_norm
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centered = x - mean
    # no select in the hot path: each of the padded lanes holds -mean
    squares = tl.sum(centered * centered, axis=0) - (BLOCK - n_cols) * mean * mean
    rstd = tl.rsqrt(tl.maximum(squares, 0.0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centered * rstd * weight + bias, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    weight, bias = weight.contiguous(), bias.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, weight, bias, out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
