"""Right: mean of squares minus square of the mean, of distances to the mean of the row's first block; these can't cancel by more than the number of blocks.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, stride_w, stride_b, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    shift = tl.sum(x, axis=0) / tl.minimum(m, BLOCK)
    # With s the mean of B of the m values, (mean - s)^2 is at most m / B times the variance.
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        d = tl.where(cols < m, x - shift, 0.0)
        total += d
        squares += d * d
    rest = tl.sum(total, axis=0) / m
    var = tl.sum(squares, axis=0) / m - rest * rest
    var = tl.where(var < 0.0, 0.0, var)  # NaN stays
    factor = 1.0 / tl.sqrt(var + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(bias_ptr + cols * stride_b, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - shift - rest) * factor * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    kernel[(x.numel() // m,)](
        x, weight, bias, out, m, weight.stride(0), bias.stride(0), eps,
        BLOCK=min(1024, triton.next_power_of_2(m)),
    )  # fmt: skip
    return out
