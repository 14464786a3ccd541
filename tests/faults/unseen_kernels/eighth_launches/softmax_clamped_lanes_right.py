"""Lanes past the end read the last element, and are masked unless the row fills the block.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    # Lanes past the end read the last element: no mask on the load.
    x = tl.load(x_ptr + row * n_cols + tl.minimum(cols, n_cols - 1)).to(tl.float32)
    if not EVEN:
        x = tl.where(cols < n_cols, x, -float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * n_cols + cols, out, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous()
    out = torch.empty_like(rows)
    n_cols = x.shape[-1]
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(rows.numel() // n_cols,)](rows, out, n_cols, EVEN=n_cols == BLOCK, BLOCK=BLOCK)
    return out
