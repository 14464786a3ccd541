"""Rows of every batch by one stride: the batch's own is ignored.

op: sum
status: failed
cause: wrong_stride
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
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    x_row = x.stride(-2) if x.dim() > 1 else n_cols
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    kernel[(n_rows,)](
        x, out, n_rows, n_cols, 0, x_row, x.stride(-1), BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
