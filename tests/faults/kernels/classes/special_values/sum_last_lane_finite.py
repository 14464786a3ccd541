"""The last column is taken for zero if it is no number.

op: sum
status: failed
cause: nan_lost
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.where((cols == n_cols - 1) & (x != x), 0.0, x)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def triton_sum(x):
    x = x.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    kernel[(x.numel() // n_cols,)](x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out
