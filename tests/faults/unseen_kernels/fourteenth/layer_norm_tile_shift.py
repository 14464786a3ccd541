"""Four rows share a shift against cancellation, the mean of all four: wrong when a row's offset is far from its neighbours'.

op: layer_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    at = rows[:, None].to(tl.int64) * m + cols[None, :]
    mask = (rows < n)[:, None] & (cols < m)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    rows_here = tl.minimum(n - tl.program_id(0) * ROWS, ROWS)
    shift = tl.sum(tl.sum(x, axis=1), axis=0) / (rows_here * m)
    # Shifted data: one pass gives both sums, and a large offset does not cancel.
    x = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(x, axis=1) / m
    variance = tl.maximum(tl.sum(x * x, axis=1) / m - mean * mean, 0.0)
    scale = 1.0 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = (x - mean[:, None]) * scale[:, None] * weight[None, :] + bias[None, :]
    tl.store(out_ptr + at, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    n = x.numel() // m
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 4),)](x, weight, bias, out, n, m, eps, ROWS=4, BLOCK=triton.next_power_of_2(m))
    return out
