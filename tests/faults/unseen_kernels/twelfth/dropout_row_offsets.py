"""A row's random numbers start 16,384 after those of the row before: in longer rows the end has the mask of the next row's start.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, p, seed, ROW: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    at = row.to(tl.int64) * n_cols + cols
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    stays = tl.rand(seed, row * ROW + cols) >= p
    tl.store(out_ptr + at, tl.where(stays, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols, triton.cdiv(n_cols, 1024))](
        x, out, n_cols, p, seed, ROW=16384, BLOCK=1024
    )
    return out
