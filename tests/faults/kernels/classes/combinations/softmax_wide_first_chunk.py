"""Wide rows subtract the maximum of their first chunk: later, larger scores overflow.

op: softmax
status: failed
cause: missing_maximum
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel_narrow(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def kernel_wide(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new = tl.max(x, axis=0) if start == 0 else largest
        base = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - base) + tl.sum(tl.exp(x - base), axis=0)
        largest = new
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - largest) / total, mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    if n_cols <= 512:
        kernel_narrow[(n_rows,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    else:
        kernel_wide[(n_rows,)](x, out, n_cols, BLOCK=512)
    return out
