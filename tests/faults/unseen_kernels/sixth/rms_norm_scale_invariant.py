"""Rows of tiny values are scaled up before the squares, as if the norm did not depend on scale; eps makes it depend.

op: rms_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    # squares of tiny values underflow: bring such rows to 1, the norm divides it out again
    largest = tl.max(tl.abs(x), axis=0)
    is_tiny = (largest > 0.0) & (largest < 6.103515625e-05)
    scale = tl.where(is_tiny, 1.0 / tl.maximum(largest, 1e-37), 1.0)
    x = x * scale
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * rstd * weight, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.contiguous().view(-1, x.shape[-1])
    weight = weight.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, weight, out, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
