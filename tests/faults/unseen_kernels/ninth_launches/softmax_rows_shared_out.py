"""The rows that each program takes are rounded to the nearest whole number; where the share rounds down, the last rows are never written.

op: softmax
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl

ELEMENTS_IN_FLIGHT = 2**19


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, share, BLOCK: tl.constexpr):
    first = tl.program_id(0) * share
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    for row in range(first, min(first + share, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    programs = max(1, min(n_rows, ELEMENTS_IN_FLIGHT // n_cols))
    share = round(n_rows / programs)
    kernel[(programs,)](rows, out, n_rows, n_cols, share, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
