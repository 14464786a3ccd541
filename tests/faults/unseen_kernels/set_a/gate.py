"""A second factor repeated over the rows is read as one row for the whole tensor, though each batch has a row of its own.

op: vector_mul
status: failed
cause: broadcast layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _scale_rows(x_ptr, g_ptr, out_ptr, n_rows, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    g = tl.load(g_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    at = rows[:, None] * n_cols + cols[None, :]
    m = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * g[None, :], mask=m)


@triton.jit
def _mul(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m).to(tl.float32)
    y = tl.load(y_ptr + i, mask=m).to(tl.float32)
    tl.store(out_ptr + i, x * y, mask=m)


def _is_row(t):
    return t.dim() > 1 and t.stride(-2) == 0 and t.stride(-1) == 1


def triton_vector_mul(x, y):
    if _is_row(x) and not _is_row(y):
        x, y = y, x  # the product commutes
    if _is_row(y):
        # A broadcast gate: don't write it out in full.
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        grid = (triton.cdiv(n_rows, 8), triton.cdiv(n_cols, 256))
        _scale_rows[grid](x, y, out, n_rows, n_cols, ROWS=8, COLS=256)
        return out
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _mul[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
