"""The maximum is kept between -1e30 and 1e30, so a row with +inf has finite numbers.

op: softmax
status: failed
cause: nan_lost
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=0)
    power = tl.exp(x - tl.minimum(tl.maximum(largest, -1.0e30), 1.0e30))
    out = power / tl.sum(power, axis=0)
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
