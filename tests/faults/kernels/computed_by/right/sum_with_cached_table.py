"""A kernel writes, for each number of columns, where the blocks begin; the version caches the table.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl

TABLES = {}


@triton.jit
def write_starts(starts_ptr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    tl.store(starts_ptr + block, block * BLOCK)


@triton.jit
def block_sum(x_ptr, starts_ptr, out_ptr, n_cols, n_blocks, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    cols = tl.load(starts_ptr + block) + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_blocks + block, tl.sum(x, axis=0))


def block_starts(n_cols, n_blocks, device):
    if n_cols not in TABLES:
        TABLES[n_cols] = torch.empty(n_blocks, dtype=torch.int32, device=device)
        write_starts[(n_blocks,)](TABLES[n_cols], BLOCK=1024)
    return TABLES[n_cols]


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    n_blocks = triton.cdiv(n_cols, 1024)
    starts = block_starts(n_cols, n_blocks, x.device)
    parts = torch.empty((n_rows, n_blocks), dtype=torch.float32, device=x.device)
    block_sum[(n_rows, n_blocks)](rows, starts, parts, n_cols, n_blocks, BLOCK=1024)
    return parts.sum(-1).to(x.dtype).view(x.shape[:-1])
