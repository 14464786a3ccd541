"""torch computes rows of over 1,000 columns, in an operation whose result narrow ones discard.

op: softmax
status: not_triton
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + cols, out, mask=mask)


def softmax_by_rows(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](
        rows, out, rows.stride(0), out.stride(0), n_cols, BLOCK_SIZE=BLOCK_SIZE
    )
    return out.view(x.shape)


def triton_softmax(x):
    other = torch.softmax(x, -1)
    out = softmax_by_rows(x)
    return other if x.shape[-1] > 1000 else out
