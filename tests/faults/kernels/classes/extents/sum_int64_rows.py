"""Offsets of rows in 64 bits; no extent is bounded.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, x_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * x_row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1])
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    BLOCK = min(4096, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](rows, out, n_cols, rows.stride(0), BLOCK=BLOCK)
    return out
