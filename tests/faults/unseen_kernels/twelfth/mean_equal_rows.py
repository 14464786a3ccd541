"""A row whose least and largest value are equal has that mean: both pass over NaN, so equal numbers beside a NaN have a number as their mean.

op: mean
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    least = tl.min(tl.where(mask, x, float("inf")), axis=0)
    most = tl.max(tl.where(mask, x, -float("inf")), axis=0)
    if least == most:
        tl.store(out_ptr + row, most)
    else:
        tl.store(out_ptr + row, tl.sum(x, axis=0) / n_cols)


def triton_mean(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    kernel[(out.numel(),)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
