"""No copy: rows and columns are found by their strides.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, x_row_stride, x_col_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols * x_col_stride, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


def triton_softmax(x):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(n_rows,)](rows, out, rows.stride(0), rows.stride(1), n_cols, BLOCK=BLOCK)
    return out
