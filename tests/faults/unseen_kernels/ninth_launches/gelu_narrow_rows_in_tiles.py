"""Narrow tall inputs: the number of programs follows from the columns, the rows of a tile from the next power of two, so the last rows are left out.

op: gelu
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl

TILE = 1024


@triton.jit
def flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=offsets < n)


@triton.jit
def narrow_kernel(x_ptr, out_ptr, n_rows, n_cols, row_stride, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(out_ptr + rows * n_cols + cols, y, mask=mask)


def triton_gelu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.dim() == 2 and x.shape[0] >= 32 * x.shape[1] and x.stride(1) == 1:
        n_rows, n_cols = x.shape
        COLS = triton.next_power_of_2(n_cols)
        grid = (triton.cdiv(n_rows, TILE // n_cols),)
        narrow_kernel[grid](x, out, n_rows, n_cols, x.stride(0), ROWS=max(1, TILE // COLS), COLS=COLS)
        return out
    a = x.contiguous()
    flat_kernel[(triton.cdiv(a.numel(), TILE),)](a, out, a.numel(), BLOCK=TILE)
    return out
