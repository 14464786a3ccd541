"""Offsets of the random numbers are a block apart from row to row: rows of more than 1024 share theirs with the next.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, p, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row.to(tl.int64) * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        keep = tl.rand(seed, row * BLOCK + cols) >= p
        tl.store(out_ptr + row.to(tl.int64) * n_cols + cols, tl.where(keep, x / (1.0 - p), 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    n_cols = max(1, x.shape[-1]) if x.dim() else 1
    out = torch.empty_like(x)
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, out, n_cols, p, seed, BLOCK=BLOCK)
    return out
