"""The output is stored by the row stride of the input.

op: rms_norm
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * row_stride + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](
        rows, weight.contiguous(), out, rows.stride(0), n_cols, eps,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out.view(x.shape)
