"""Mean and variance in one pass, shifted by the first element of the tile's first row: it does not help the tile's other rows, whose level may be another.

op: layer_norm
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)
    # The plain E[x^2] - E[x]^2 cancels where the mean is large: subtract a typical value first.
    shift = tl.load(x_ptr + first * n_cols).to(tl.float32)
    one = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    two = tl.zeros((ROWS, BLOCK), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        d = tl.where(mask, x - shift, 0.0)
        one += d
        two += d * d
    mean = tl.sum(one, axis=1) / n_cols
    var = tl.maximum(tl.sum(two, axis=1) / n_cols - mean * mean, 0.0)
    rstd = 1.0 / tl.sqrt(var + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        places = rows[:, None] * n_cols + cols[None, :]
        x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        y = (x - shift - mean[:, None]) * rstd[:, None] * w[None, :] + b[None, :]
        tl.store(out_ptr + places, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    block = min(512, triton.next_power_of_2(n_cols))
    kernel[(triton.cdiv(n_rows, 4),)](x, weight, bias, out, n_rows, n_cols, eps, ROWS=4, BLOCK=block)
    return out
