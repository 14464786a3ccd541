"""Y is addressed by the strides of x, so it is read wrongly where the two lie in memory in different ways.

It shows at x = randn(129, 127).t(), y = randn(127, 129), float32 (right where both have the same strides).

op: vector_mul
status: failed
cause: stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n_rows, n_cols, xr, xc, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * xr + cols * xc, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + rows * xr + cols * xc, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, x * y, mask=mask)


def triton_vector_mul(x, y):
    a, b = (t.reshape(-1, t.shape[-1]) for t in (x, y))
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = a.shape
    grid = (triton.cdiv(n_rows, 16), triton.cdiv(n_cols, 64))
    kernel[grid](
        a, b, out, n_rows, n_cols, a.stride(0), a.stride(1), BM=16, BN=64
    )
    return out
