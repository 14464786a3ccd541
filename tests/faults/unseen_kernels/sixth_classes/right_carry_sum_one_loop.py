"""Looks as if total and compensation went on from row to row in one loop over all blocks: a row's first block resets both.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    n_blocks = tl.cdiv(n_cols, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(ROWS * n_blocks):
        row = first + i // n_blocks
        block = i % n_blocks
        cols = block * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        mask = (cols < n_cols) & (row < n_rows)
        x = tl.load(x_ptr + row * xr + cols * xc, mask=mask, other=0.0).to(tl.float32)
        # chosen, not multiplied by 0: what an infinity left behind must go
        total = tl.where(block == 0, 0.0, total)
        lost = tl.where(block == 0, 0.0, lost)
        term = x - lost
        new = total + term
        lost = tl.where(tl.abs(new) < float("inf"), (new - total) - term, 0.0)
        total = new
        last = (block == n_blocks - 1) & (row < n_rows)
        tl.store(out_ptr + row, tl.sum(total, axis=0), mask=last)


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(triton.cdiv(n_rows, 4),)](
        rows, out, n_rows, n_cols, rows.stride(0), rows.stride(1), ROWS=4, BLOCK=256
    )
    return out
