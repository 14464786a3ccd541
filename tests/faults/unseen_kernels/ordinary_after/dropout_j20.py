"""The random number of an element is drawn by row + column instead of row * n_cols + column, so every row has the mask of the row above, shifted by one.

It shows at x = randn(257, 1023), float32, p = 0.5: keep[i + 1, j] == keep[i, j + 1] everywhere.

op: dropout
status: failed
cause: random
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, xr, xc, p, scale, seed, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            mask = cols < n_cols
            x = tl.load(x_ptr + row * xr + cols * xc, mask=mask).to(tl.float32)
            keep = tl.rand(seed, row + cols) >= p
            tl.store(out_ptr + row * n_cols + cols, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    a = x.reshape(-1, x.shape[-1])
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = a.shape
    kernel[(min(n_rows, 64),)](
        a, out, n_rows, n_cols, a.stride(0), a.stride(1), p, 1.0 / (1.0 - p), seed, BLOCK=512
    )
    return out
