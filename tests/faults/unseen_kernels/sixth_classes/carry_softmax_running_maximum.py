"""A program does four rows and starts the running maximum of each row with that of the row before.

op: softmax
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    last = min(first + ROWS, n_rows)
    largest = -float("inf")
    for row in range(first, last):
        total = 0.0
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
            new = tl.maximum(largest, tl.max(x, axis=0))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), axis=0)
            largest = new
        scale = 1.0 / total
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = cols < n_cols
            x = tl.load(x_ptr + row * xr + cols * xc, mask=mask, other=-float("inf")).to(tl.float32)
            tl.store(out_ptr + row * n_cols + cols, tl.exp(x - largest) * scale, mask=mask)


def triton_softmax(x):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(triton.cdiv(n_rows, 4),)](
        rows, out, n_rows, n_cols, rows.stride(0), rows.stride(1), ROWS=4, BLOCK=1024
    )
    return out
