"""The one-pass variance is shifted by the mean of the row before: it cancels where neighbouring rows lie far apart.

op: layer_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, m, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < m
    weight = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32)
    first = tl.program_id(0).to(tl.int64) * ROWS
    x = tl.load(x_ptr + first * m + at, mask=inside, other=0.0).to(tl.float32)
    shift = tl.sum(x, axis=0) / m
    for i in range(ROWS):
        row = first + i
        here = inside & (row < rows)
        x = tl.load(x_ptr + row * m + at, mask=here, other=0.0).to(tl.float32)
        d = tl.where(here, x - shift, 0.0)
        # both sums in one pass; the shift takes away what would cancel
        offset = tl.sum(d, axis=0) / m
        variance = tl.maximum(tl.sum(d * d, axis=0) / m - offset * offset, 0.0)
        y = (d - offset) / tl.sqrt(variance + eps) * weight + bias
        tl.store(out_ptr + row * m + at, y, mask=here)
        shift += offset


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    kernel[(triton.cdiv(rows, 4),)](
        x, weight, bias, out, rows, m, eps, ROWS=4, BLOCK=triton.next_power_of_2(m),
    )
    return out
