"""Rows may lie further apart than they are long; only other layouts are copied.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, x_row, w_step, b_step, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols * w_step, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * b_step, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight, bias, out, n_cols, rows.stride(0), weight.stride(0), bias.stride(0), eps,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
