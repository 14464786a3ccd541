"""A layout is taken for granted.

op: sum
status: wrong_values
from: sum_two_stages
operator: drop_contiguous
seed: 5
was: x.contiguous()
now: x
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * n_parts + part, tl.sum(x, axis=0))


@triton.jit
def whole_kernel(part_ptr, out_ptr, n_parts, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    parts = tl.load(part_ptr + row * n_parts + lanes, mask=lanes < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def triton_sum(x):
    rows = x.view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    n_parts = triton.cdiv(n_cols, 1024)
    parts = torch.empty((n_rows, n_parts), dtype=torch.float32, device=x.device)
    part_kernel[(n_rows, n_parts)](rows, parts, n_cols, n_parts, BLOCK=1024)
    whole_kernel[(n_rows,)](parts, out, n_parts, BLOCK=triton.next_power_of_2(n_parts))
    return out
