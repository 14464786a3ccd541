"""The mean of squares is clamped to at least eps; nothing is added to it.

op: rms_norm
status: failed
cause: wrong_formula
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    squares = tl.maximum(tl.sum(x * x, axis=0) / n_cols, eps)
    tl.store(out_ptr + row * n_cols + cols, x / tl.sqrt(squares) * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight.contiguous(), out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out.view(x.shape)
