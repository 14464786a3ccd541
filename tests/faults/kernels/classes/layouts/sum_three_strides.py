"""Three dimensions by three strides; more are joined first.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, x_batch, x_row, x_col, BLOCK: tl.constexpr):
    batch = (tl.program_id(0) // n_rows).to(tl.int64)
    row = (tl.program_id(0) % n_rows).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + batch * x_batch + row * x_row + cols * x_col, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x.to(tl.float32), axis=0))


def triton_sum(x):
    x3 = x.reshape(-1, *x.shape[-2:]) if x.dim() > 1 else x.view(1, 1, -1)
    batch, n_rows, n_cols = x3.shape
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(batch * n_rows,)](
        x3, out, n_rows, n_cols, x3.stride(0), x3.stride(1), x3.stride(2),
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
