"""A product without its second factor.

op: vector_add
status: wrong_values
from: add_strided
operator: drop_factor
seed: 0
was: row * n_cols
now: row
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n_cols, xr, xc, yr, yc, alpha, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * xr + cols * xc, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + row * yr + cols * yc, mask=mask).to(tl.float32)
    tl.store(out_ptr + row + cols, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    a, b = (t.reshape(-1, t.shape[-1]) for t in (x, y))
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = a.shape
    kernel[(n_rows, triton.cdiv(n_cols, 256))](
        a, b, out, n_cols, a.stride(0), a.stride(1), b.stride(0), b.stride(1), alpha, BLOCK=256
    )
    return out
