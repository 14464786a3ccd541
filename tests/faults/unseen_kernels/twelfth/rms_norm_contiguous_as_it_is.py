"""One row stride for all rows where every leading dimension allows it, else a copy: of a contiguous tensor that is itself, and the stride of a length of one may be any number. Its author took it to be right.

op: rms_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, row_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def has_one_row_stride(x):
    if x.stride(-1) != 1:
        return False
    return all(x.stride(d) == x.shape[d + 1] * x.stride(d + 1) for d in range(x.dim() - 2))


def triton_rms_norm(x, weight, eps=1e-5):
    if not has_one_row_stride(x):
        x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_cols = x.shape[-1]
    row_stride = x.stride(-2) if x.dim() > 1 else 0
    kernel[(x.numel() // n_cols,)](
        x, weight.contiguous(), out, row_stride, n_cols, eps, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
