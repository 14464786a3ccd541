"""A maximum that grows by less than 4 replaces the old one, while the sum stays as it is.

op: softmax
status: failed
cause: missing_rescale
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        shrink = tl.where(new > largest + 4.0, tl.exp(largest - new), 1.0)
        total = total * shrink + tl.sum(tl.exp(x - new), axis=0)
        largest = new
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - largest) / total, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=BLOCK)
    return out.view(x.shape)
