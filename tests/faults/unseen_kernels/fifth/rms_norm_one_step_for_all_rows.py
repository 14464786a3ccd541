"""Rows are stepped through by the stride of the second last dimension only, where the last is contiguous: batches that are permuted or cut are misread.

op: rms_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, x_row, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    inverse = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * inverse * w, mask=inside)


def triton_rms_norm(x, weight, eps=1e-5):
    n_cols = x.shape[-1]
    if x.stride(-1) != 1:
        x = x.contiguous()
    weight = weight.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    x_row = x.stride(-2) if x.dim() > 1 else n_cols
    n_rows = x.numel() // n_cols
    kernel[(n_rows,)](x, weight, out, x_row, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols))
    return out
