"""The output is the exponential of the logarithm of the softmax.

op: softmax
status: passed
drawn: no
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
    shifted = x - largest
    out = tl.exp(shifted - tl.log(tl.sum(tl.exp(shifted), axis=0)))
    tl.store(out_ptr + row * n_cols + cols, out, mask=mask)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
