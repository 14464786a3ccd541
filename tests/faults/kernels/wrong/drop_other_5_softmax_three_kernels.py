"""A masked load without its filling.

op: softmax
status: wrong_values
from: softmax_three_kernels
operator: drop_other
seed: 5
was: tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=cols < n_cols, other=-float('inf'))
now: tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=cols < n_cols)
"""

import torch
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, max_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=cols < n_cols)
    tl.store(max_ptr + tl.program_id(0), tl.max(x.to(tl.float32), axis=0))


@triton.jit
def sum_kernel(x_ptr, max_ptr, sum_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    numerator = tl.exp(x.to(tl.float32) - tl.load(max_ptr + tl.program_id(0)))
    tl.store(sum_ptr + tl.program_id(0), tl.sum(numerator, axis=0))


@triton.jit
def divide_kernel(x_ptr, max_ptr, sum_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + tl.program_id(0) * n_cols + cols, mask=mask).to(tl.float32)
    numerator = tl.exp(x - tl.load(max_ptr + tl.program_id(0)))
    out = numerator / tl.load(sum_ptr + tl.program_id(0))
    tl.store(out_ptr + tl.program_id(0) * n_cols + cols, out, mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    largest, total = torch.empty((2, n_rows), dtype=torch.float32, device=x.device)
    BLOCK = triton.next_power_of_2(n_cols)
    max_kernel[(n_rows,)](rows, largest, n_cols, BLOCK=BLOCK)
    sum_kernel[(n_rows,)](rows, largest, total, n_cols, BLOCK=BLOCK)
    divide_kernel[(n_rows,)](rows, largest, total, out, n_cols, BLOCK=BLOCK)
    return out.view(x.shape)
