"""E[x^2] - E[x]^2 cancels where the mean is far larger than the spread.

op: layer_norm
status: wrong_values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    var = tl.sum(x * x, axis=0) / n_cols - mean * mean
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    out = centred / tl.sqrt(var + eps) * w + b
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    layer_norm_kernel[(n_rows,)](
        rows, weight.contiguous(), bias.contiguous(), out, n_cols, eps,
        BLOCK_SIZE=triton.next_power_of_2(n_cols),
    )
    return out.view(x.shape)
