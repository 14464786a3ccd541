"""The axes of the grid are swapped: axis 0, which the kernel takes for rows, gets the number of column tiles and the other way round, so tiles of non-square inputs are never written.

It shows at x = randn(1, 1000), float32: columns from 64 on are whatever the memory held.

op: relu
status: failed
cause: grid
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * xr + cols * xc, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    a = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = a.shape
    grid = (triton.cdiv(n_cols, 64), triton.cdiv(n_rows, 16))
    kernel[grid](a, out, n_rows, n_cols, a.stride(0), a.stride(1), BM=16, BN=64)
    return out
