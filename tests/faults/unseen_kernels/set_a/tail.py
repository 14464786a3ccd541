"""The rectified x less a tail, the tail from a Chebyshev fit of erfc that is as good in relative terms: right where x is finite, NaN at infinity.

op: gelu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _erfc(z):
    """Return erfc(z) of z >= 0 within 1.2e-7 of itself."""
    t = 1.0 / (1.0 + 0.5 * z)
    p = t * 0.17087277 - 0.82215223
    p = t * p + 1.48851587
    p = t * p - 1.13520398
    p = t * p + 0.27886807
    p = t * p - 0.18628806
    p = t * p + 0.09678418
    p = t * p + 0.37409196
    p = t * p + 1.00002368
    p = t * p - 1.26551223
    return t * tl.exp(p - z * z)


@triton.jit
def _gelu(x_ptr, out_ptr, n_rows, n_cols, row_stride, col_stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    for first in range(0, n_cols, COLS):
        col = first + tl.arange(0, COLS)[None, :].to(tl.int64)
        m = (row < n_rows) & (col < n_cols)
        x = tl.load(x_ptr + row * row_stride + col * col_stride, mask=m, other=1.0).to(tl.float32)
        size = tl.abs(x)
        tail = 0.5 * size * _erfc(size * 0.7071067811865476)
        tl.store(out_ptr + row * n_cols + col, tl.where(x > 0, x, 0.0) - tail, mask=m)


def triton_gelu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    plane = x.reshape(-1, x.shape[-1]) if x.dim() else x.reshape(1, 1)
    n_rows, n_cols = plane.shape
    _gelu[(triton.cdiv(n_rows, 4),)](
        plane, out, n_rows, n_cols, plane.stride(0), plane.stride(1), ROWS=4, COLS=256
    )
    return out
