"""The running maximum is updated before the factor exp(old - new) is taken, so the factor is always 1 and the sum so far is not rescaled.

It shows at x (1, 1000), float32 (blocks of 256).

op: softmax
status: failed
cause: order
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        top = tl.maximum(largest, tl.max(x, axis=0))
        new = tl.where(top == -float("inf"), 0.0, top)
        largest = top
        scale = tl.where(largest == top, 1.0, tl.exp(largest - new))
        total = total * scale + tl.sum(tl.exp(x - new), axis=0)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - largest) / total, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=256)
    return out.view(x.shape)
