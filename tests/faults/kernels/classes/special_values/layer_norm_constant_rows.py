"""A row without spread gives zeros: its bias is forgotten.

op: layer_norm
status: failed
cause: wrong_formula
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    out = centred * tl.rsqrt(variance + eps) * w + b
    spread = (tl.max(tl.where(mask, x, -float("inf")), axis=0) != tl.min(tl.where(mask, x, float("inf")), axis=0)) | (n_cols == 1)
    tl.store(out_ptr + row * n_cols + cols, tl.where(spread, out, 0.0), mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    BLOCK = triton.next_power_of_2(n_cols)
    kernel[(x.numel() // n_cols,)](x, weight, bias, out, n_cols, eps, BLOCK=BLOCK)
    return out
