"""A program sums several rows with a compensation for rounding, which it does not clear between rows.

op: sum
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, BLOCK: tl.constexpr):
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * xr + cols * xc, mask=cols < n_cols, other=0.0).to(tl.float32)
            term = x - lost
            new = total + term
            # what was too small for `new`; infinities have nothing to make up for
            lost = tl.where(tl.abs(new) < float("inf"), (new - total) - term, 0.0)
            total = new
        tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(min(n_rows, 32),)](rows, out, n_rows, n_cols, rows.stride(0), rows.stride(1), BLOCK=128)
    return out
