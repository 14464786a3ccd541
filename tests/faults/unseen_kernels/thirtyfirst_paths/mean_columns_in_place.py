"""Right: rows that lie across memory are read in place along their other dimension, in tiles that turn with the ratio of the sides.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def across(x_ptr, part_ptr, n_rows, m, stride, chunk, factor,
           ROWS: tl.constexpr, COLS: tl.constexpr):  # fmt: skip
    # Neighbours in memory are elements of different rows; a program takes a chunk of their columns.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    first = tl.program_id(1) * chunk
    last = tl.minimum(first + chunk, m)
    total = tl.zeros((COLS, ROWS), dtype=tl.float32)
    for start in range(first, last, COLS):
        cols = start + tl.arange(0, COLS)
        mask = (cols < last)[:, None] & (rows < n_rows)[None, :]
        at = cols.to(tl.int64)[:, None] * stride + rows[None, :]
        total += tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    at = tl.program_id(1).to(tl.int64) * n_rows + rows
    tl.store(part_ptr + at, tl.sum(total, axis=0) * factor, mask=rows < n_rows)


@triton.jit
def along(x_ptr, out_ptr, m, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    total = tl.zeros((SIZE,), dtype=tl.float32)
    # From the end to the beginning: the last, short block first.
    for back in range(0, m, SIZE):
        cols = (m - 1) // SIZE * SIZE - back + tl.arange(0, SIZE)
        total += tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0) / m)


def triton_mean(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if n_rows == 0:
        return out
    if x.dim() == 2 and x.stride(0) == 1 and x.stride(1) >= n_rows and n_rows > 16:
        few = n_rows * 4 < m  # then the columns are split, and the parts are added like rows
        parts = min(triton.cdiv(m, 64), 60) if few else 1
        chunk = triton.cdiv(m, parts)
        used = triton.cdiv(m, chunk)
        rows, cols = (32, 64) if few else (256, 8) if m < 512 and n_rows % 256 == 0 else (128, 16)
        grid = (triton.cdiv(n_rows, rows), used)
        if used == 1:
            across[grid](x, out, n_rows, m, x.stride(1), m, 1.0 / m, ROWS=rows, COLS=cols)
            return out
        sums = torch.empty((used, n_rows), dtype=torch.float32, device=x.device)
        across[grid](x, sums, n_rows, m, x.stride(1), chunk, 1.0, ROWS=rows, COLS=cols)
        grid = (triton.cdiv(n_rows, rows), 1)
        across[grid](sums, out, n_rows, used, n_rows, used, 1.0 / m, ROWS=rows, COLS=cols)
    else:
        x = x.contiguous()
        along[(n_rows,)](x, out, m, SIZE=min(1024, triton.next_power_of_2(m)))
    return out
