"""All rows of a tensor of three or more dimensions are taken to lie stride(-2) apart, so a slice of a middle dimension is read wrongly.

op: mean
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * row_stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


def triton_mean(x):
    n_cols = x.shape[-1]
    if x.stride(-1) != 1:
        x = x.contiguous()
    row_stride = x.stride(-2) if x.dim() > 1 else n_cols
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = x.numel() // n_cols
    kernel[(n_rows,)](x, out, row_stride, n_cols, BLOCK=min(1024, triton.next_power_of_2(n_cols)))
    return out
