"""Kahan's compensation of a lane is inf - inf after an infinity: a row longer than a block with an infinity in it becomes NaN.

op: sum
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n_cols, x_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        y = x - lost
        t = total + y
        lost = (t - total) - y
        total = t
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def triton_sum(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    block = min(1024, triton.next_power_of_2(n_cols))
    kernel[(max(out.numel(), 1),)](x, out, n_cols, n_cols, BLOCK=block)
    return out
