"""Rows, columns and weight are read by their own strides.

op: rms_norm
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, x_row, x_col, w_step, out_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * w_step, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * out_row + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight, out, n_cols, eps,
        rows.stride(0), rows.stride(1), weight.stride(0), out.stride(0),
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out.view(x.shape)
