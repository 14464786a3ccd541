"""The variance is taken in one pass from values less one element of the tile of eight rows: wrong when the rows of a tile have far different means.

op: layer_norm
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n)[:, None] & (cols < m)[None, :]
    at = rows[:, None].to(tl.int64) * m + cols[None, :]
    # Sums of squares cancel when the mean is large: subtract a sample first, the variance stays the same.
    shift = tl.load(x_ptr + first.to(tl.int64) * m).to(tl.float32)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    x = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(x, axis=1) / m
    variance = tl.maximum(tl.sum(x * x, axis=1) / m - mean * mean, 0.0)
    scale = 1.0 / tl.sqrt(variance + eps)
    w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = (x - mean[:, None]) * scale[:, None] * w[None, :] + b[None, :]
    tl.store(out_ptr + at, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    n = x.numel() // m
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 8),)](x, weight, bias, out, n, m, eps, ROWS=8, BLOCK=triton.next_power_of_2(m))
    return out
