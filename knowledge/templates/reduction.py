"""Reduction: each program walks along one row, block by block. Here: sum over the last dim."""

import math

import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
MAX_BLOCK_SIZE = 1024  # a sweep can turn it


@triton.jit
def reduction_kernel(x_ptr, out_ptr, x_row_stride, x_col_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)  # an offset may pass 2**31
    x_row_ptr = x_ptr + row * x_row_stride
    partial = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE).to(tl.int64)
        # `other` must change nothing: 0 for a sum, -inf for a maximum.
        x = tl.load(x_row_ptr + cols * x_col_stride, mask=cols < n_cols, other=0.0)
        partial += x.to(tl.float32)  # your step
    tl.store(out_ptr + row, tl.sum(partial, axis=0))


def triton_template(x: torch.Tensor) -> torch.Tensor:
    if x.dim() < 1:
        raise ValueError("x needs at least one dimension to be reduced")
    if x.dtype not in DTYPES:
        raise ValueError(f"x must be one of {DTYPES}, not {x.dtype}")
    n_rows, n_cols = math.prod(x.shape[:-1]), x.shape[-1]
    x_2d = x.reshape(n_rows, n_cols)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    BLOCK_SIZE = min(triton.next_power_of_2(max(n_cols, 1)), MAX_BLOCK_SIZE)
    reduction_kernel[(n_rows,)](
        x_2d, out, x_2d.stride(0), x_2d.stride(1), n_cols, BLOCK_SIZE=BLOCK_SIZE
    )
    return out
