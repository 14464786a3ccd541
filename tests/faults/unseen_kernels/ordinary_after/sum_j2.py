"""The programs that share a row each store their partial sum to the same place instead of adding it atomically, so only the one that stores last survives.

It shows at x = randn(1, 1000), float32: any row of more than 512 columns.

op: sum
status: failed
cause: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.zeros(x.shape[:-1], dtype=torch.float32, device=x.device)
    kernel[(rows.shape[0], triton.cdiv(rows.shape[1], 512))](rows, out, rows.shape[1], BLOCK=512)
    return out.to(x.dtype)
