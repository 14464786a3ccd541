"""A view whose rows are nearer than its columns is taken for a transposed matrix with rows one element apart.

op: mean
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


@triton.jit
def columns_kernel(x_ptr, out_ptr, n_rows, n_cols, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Neighbouring threads take neighbouring rows, so that the loads are coalesced."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    acc = tl.zeros((BLOCK, ROWS), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = (start + tl.arange(0, BLOCK)).to(tl.int64)
        mask = (cols < n_cols)[:, None] & (rows < n_rows)[None, :]
        acc += tl.load(x_ptr + cols[:, None] * stride + rows[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + rows, tl.sum(acc, axis=0) / n_cols, mask=rows < n_rows)


def triton_mean(x):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    rows = x.reshape(-1, n_cols)
    n_rows = rows.shape[0]
    if rows.stride(1) > rows.stride(0) and rows.stride(0) > 0:
        columns_kernel[(triton.cdiv(n_rows, 64),)](rows, out, n_rows, n_cols, rows.stride(1), ROWS=64, BLOCK=32)
    else:
        if rows.stride(1) != 1:
            rows = rows.contiguous()
        rows_kernel[(n_rows,)](rows, out, n_cols, rows.stride(0), BLOCK=1024)
    return out
