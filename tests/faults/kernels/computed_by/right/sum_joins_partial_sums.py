"""Triton adds blocks of 1024; torch adds the blocks' sums.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl



@triton.jit
def block_sum(x_ptr, out_ptr, n_cols, n_blocks, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_blocks + block, tl.sum(x, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    n_blocks = triton.cdiv(n_cols, 1024)
    parts = torch.empty((n_rows, n_blocks), dtype=torch.float32, device=x.device)
    block_sum[(n_rows, n_blocks)](rows, parts, n_cols, n_blocks, BLOCK=1024)
    return parts.sum(-1).to(x.dtype).view(x.shape[:-1])
