"""The maximum is replaced, and the sum rescaled, only where it grows by more than 8.

op: softmax
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    kept = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        new = tl.max(x, axis=0)
        grows = new > kept + 8.0
        shrink = tl.where(grows, tl.exp(kept - new), 1.0)
        kept = tl.where(grows, new, kept)
        finite = tl.where(kept == -float("inf"), 0.0, kept)
        total = total * shrink + tl.sum(tl.exp(x - finite), axis=0)
    finite = tl.where(kept == -float("inf"), 0.0, kept)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - finite) / total, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    BLOCK = min(1024, triton.next_power_of_2(n_cols))
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=BLOCK)
    return out.view(x.shape)
