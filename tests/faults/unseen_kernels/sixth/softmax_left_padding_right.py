"""Nothing wrong: the running maximum may stay -inf for many blocks, and 0 is taken off then.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        off = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - off) + tl.sum(tl.exp(x - off), axis=0)
        largest = new
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        off = tl.where(largest == -float("inf"), 0.0, largest)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - off) / total, mask=mask)


def triton_softmax(x):
    if x.numel() == 0:
        return torch.empty_like(x)
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=min(1024, triton.next_power_of_2(n_cols)))
    return out.view(x.shape)
