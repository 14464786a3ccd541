"""Looks as if a row of zeros gave 0 / 0: the magnitude that the row is divided by is never below 1e-18.

op: rms_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, xr, xc, ws, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * xr + cols.to(tl.int64) * xc, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols.to(tl.int64) * ws, mask=mask, other=0.0).to(tl.float32)
    unit = tl.maximum(tl.max(tl.abs(x), axis=0), 1e-18)
    y = x / unit
    mean = tl.sum(y * y, axis=0) / n_cols
    scale = tl.rsqrt(mean + eps / unit / unit)
    tl.store(out_ptr + row * n_cols + cols, y * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight, out, n_cols, rows.stride(0), rows.stride(1), weight.stride(0), eps,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
