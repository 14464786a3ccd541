"""One pass with the sums of the distances to a shift, which is the mean of the block's first row: a row of another level cancels.

op: layer_norm
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    at = rows.to(tl.int64)[:, None] * m + cols[None, :]
    mask = (rows < n)[:, None] & (cols < m)[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    shift = tl.sum(tl.sum(tl.where((rows == first)[:, None], x, 0.0), axis=1), axis=0) / m
    d = tl.where(mask, x - shift, 0.0)
    mean = tl.sum(d, axis=1) / m
    var = tl.maximum(tl.sum(d * d, axis=1) / m - mean * mean, 0.0)
    w = tl.load(w_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    y = (d - mean[:, None]) * tl.rsqrt(var + eps)[:, None] * w[None, :] + b[None, :]
    tl.store(out_ptr + at, y, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    n = x.numel() // m
    out = torch.empty_like(x)
    kernel[(triton.cdiv(n, 4),)](x, weight, bias, out, n, m, eps, ROWS=4, BLOCK=triton.next_power_of_2(m))
    return out
