"""Sums are kept in float16.

op: sum
status: wrong_values
needs: gpu, in the interpreter a sum takes on the type of what is added
from: sum_blocks
operator: half_accumulator
seed: 2
was: tl.zeros((BLOCK,), dtype=tl.float32)
now: tl.zeros((BLOCK,), dtype=tl.float16)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, STEP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float16)
    for start in range(0, n_cols, STEP):
        cols = start + lanes
        mask = (lanes < STEP) & (cols < n_cols)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], STEP=192, BLOCK=256)
    return out
