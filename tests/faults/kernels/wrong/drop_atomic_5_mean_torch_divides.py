"""A store where programs must add up.

op: mean
status: wrong_values
from: mean_torch_divides
operator: drop_atomic
seed: 5
was: tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))
now: tl.store(out_ptr + row, tl.sum(x, axis=0))
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.zeros(x.shape[:-1], dtype=torch.float32, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows, triton.cdiv(n_cols, 1024))](rows, out, n_cols, BLOCK=1024)
    return (out / n_cols).to(x.dtype)
