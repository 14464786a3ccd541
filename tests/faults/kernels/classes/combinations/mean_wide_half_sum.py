"""Wide rows keep the sum in the input's type: half precision and a mean of some tens overflow.

op: mean
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel_narrow(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


@triton.jit
def kernel_wide(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        total += tl.sum(x, axis=0)
        total = total.to(x_ptr.dtype.element_ty).to(tl.float32)
    tl.store(out_ptr + row, total / n_cols)


def triton_mean(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 512:
        kernel_narrow[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    else:
        kernel_wide[(n_rows,)](x, out, n_cols, BLOCK=512)
    return out
