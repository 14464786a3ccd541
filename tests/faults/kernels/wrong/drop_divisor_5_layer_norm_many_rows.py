"""A quotient without its divisor.

op: layer_norm
status: wrong_values
from: layer_norm_many_rows
operator: drop_divisor
seed: 5
was: tl.sum(centred * centred, axis=1)[:, None] / n_cols
now: tl.sum(centred * centred, axis=1)[:, None]
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, xr, xc, ws, bs, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * xr + cols * xc, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1)[:, None] / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(centred * centred, axis=1)[:, None]
    w = tl.load(w_ptr + cols * ws, mask=cols < n_cols, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * bs, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, centred * tl.rsqrt(var + eps) * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(triton.cdiv(n_rows, 4),)](
        rows, weight, bias, out, n_rows, n_cols, rows.stride(0), rows.stride(1),
        weight.stride(0), bias.stride(0), eps, ROWS=4, BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
