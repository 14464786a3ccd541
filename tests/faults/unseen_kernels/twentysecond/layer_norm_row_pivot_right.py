"""The variance is shifted by each row's own mean, and corrected by the rest that rounding left in it.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    row = first + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (cols < m)[None, :]
    at = row[:, None].to(tl.int64) * m + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    # The second pass takes off what rounding left in the first mean.
    pivot = tl.sum(x, axis=1) / m
    d = tl.where(mask, x - pivot[:, None], 0.0)
    shift = tl.sum(d, axis=1) / m
    var = tl.maximum(tl.sum(d * d, axis=1) / m - shift * shift, 0.0)
    rstd = 1.0 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = (d - shift[:, None]) * rstd[:, None] * w[None, :] + b[None, :]
    tl.store(out_ptr + at, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    rows = x.numel() // m
    per = 4 if m <= 2048 else 1
    kernel[(triton.cdiv(rows, per),)](
        x, weight, bias, out, rows, m, eps, ROWS=per, BLOCK=triton.next_power_of_2(m)
    )
    return out
