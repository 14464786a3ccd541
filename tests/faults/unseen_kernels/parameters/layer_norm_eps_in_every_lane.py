"""eps is added to every lane before the sum, those beyond the row too: up to twice of it counts.

op: layer_norm
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl


@triton.jit
def moments(x, mask, n_cols, eps):
    mean = tl.sum(x, axis=1) / n_cols
    d = tl.where(mask, x - mean[:, None], 0.0)
    return d, tl.rsqrt(tl.sum(d * d + eps, axis=1) / n_cols)


@triton.jit
def norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_rows, n_cols, eps,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    places = rows[:, None] * n_cols + cols[None, :]
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    d, rstd = moments(x, mask, n_cols, eps)
    out = d * rstd[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + places, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    ROWS = 4 if BLOCK <= 1024 else 1
    norm_kernel[(triton.cdiv(n_rows, ROWS),)](
        rows, weight.contiguous(), bias.contiguous(), out, n_rows, n_cols, eps,
        ROWS=ROWS, BLOCK=BLOCK,
    )
    return out.view(x.shape)
