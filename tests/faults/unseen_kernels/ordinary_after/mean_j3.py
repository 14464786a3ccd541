"""The partial sums are kept in the input's dtype, so in float16 and bfloat16 they round at every step and overflow, while float32 is right.

It shows at x = 3000 + randn(3, 4097), float16: inf (a lane adds 33 numbers of 3000).

op: mean
status: failed
cause: accumulator
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        acc = (acc.to(tl.float32) + x).to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + row, tl.sum(acc.to(tl.float32) * scale, axis=0))


def triton_mean(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, 1.0 / n_cols, BLOCK=128)
    return out
