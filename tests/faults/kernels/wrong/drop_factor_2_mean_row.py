"""A product without its second factor.

op: mean
status: wrong_values
from: mean_row
operator: drop_factor
seed: 2
was: row * n_cols
now: row
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
