"""Partial sums of 2048 columns; torch adds the few of a row.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, part_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(x, axis=0))


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    n_rows, n_parts = x.numel() // n_cols, triton.cdiv(n_cols, 2048)
    parts = torch.empty((*x.shape[:-1], n_parts), dtype=torch.float32, device=x.device)
    BLOCK = min(2048, triton.next_power_of_2(n_cols))
    parts_kernel[(n_rows, n_parts)](x, parts, n_cols, n_parts, BLOCK=BLOCK)
    whole = parts.squeeze(-1) if n_parts == 1 else parts.sum(-1)
    return whole.to(x.dtype)
