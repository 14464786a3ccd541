"""The variance is at least eps instead of eps more.

op: layer_norm
status: failed
cause: wrong_formula
held_out: yes
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    for i in range(ROWS):
        row = tl.program_id(0).to(tl.int64) * ROWS + i
        if row < n_rows:
            x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
            d = tl.where(mask, x - tl.sum(x, axis=0) / n_cols, 0.0)
            variance = tl.sum(d * d, axis=0) / n_cols
            variance = tl.where(variance < 64.0 * eps, tl.maximum(variance, eps), variance + eps)
            tl.store(out_ptr + row * n_cols + cols, d * tl.rsqrt(variance) * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n_rows, 4),)](
        x, weight, bias, out, n_rows, n_cols, eps, ROWS=4, BLOCK=triton.next_power_of_2(n_cols)
    )
    return out
