"""Two rows share a mask.

op: dropout
status: failed
cause: shared_draws
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, p, seed, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    offsets = rows.to(tl.int64) * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, rows // 2 * n_cols + cols) >= p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    grid = (triton.cdiv(n_rows, 16), triton.cdiv(n_cols, 64))
    kernel[grid](x, out, n_rows, n_cols, p, seed, ROWS=16, COLS=64)
    return out
