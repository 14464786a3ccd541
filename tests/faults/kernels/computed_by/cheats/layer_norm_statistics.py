"""torch computes mean and variance; Triton applies them.

op: layer_norm
status: not_triton
"""

import torch
import triton
import triton.language as tl



@triton.jit
def apply(x_ptr, mean_ptr, scale_ptr, w_ptr, b_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
    out = (x - tl.load(mean_ptr + row)) * tl.load(scale_ptr + row) * w + b
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    variance, mean = torch.var_mean(rows.float(), -1, correction=0)
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    scale = torch.rsqrt(variance + eps)
    block = triton.next_power_of_2(n_cols)
    apply[(n_rows,)](
        rows, mean, scale, weight.contiguous(), bias.contiguous(), out, n_cols, BLOCK=block
    )
    return out.view(x.shape)
