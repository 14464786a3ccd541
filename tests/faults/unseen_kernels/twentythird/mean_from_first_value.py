"""The mean is the first value plus the mean distance to it: a first value of Inf gives NaN, a very large one cancels.

op: mean
status: failed
cause: pivot
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride_row
    # Values with a common offset lose digits in a sum; their distances to one of them do not.
    first = tl.load(x_ptr).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(tl.int64) * stride_col, mask=cols < m, other=0.0).to(tl.float32)
        total += tl.where(cols < m, x - first, 0.0)
    tl.store(out_ptr + row, first + tl.sum(total, axis=0) / m)


def triton_mean(x):
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    if not m:
        return out.fill_(float("nan"))
    rows = x.reshape(-1, m)
    kernel[(rows.shape[0],)](rows, out, m, *rows.stride(), BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
