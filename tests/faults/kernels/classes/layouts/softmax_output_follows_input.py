"""The output of empty_like has the input's strides; it is written as if contiguous.

op: softmax
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_row, out_row, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_row + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(x)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, n_cols, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
