"""Right: a row is read once for its statistics, from its end, around a shift that follows the values: each move of the shift corrects both sums.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    shift = tl.load(x_ptr + m - 1).to(tl.float32)
    first = 0.0  # the sum of x - shift
    second = 0.0  # the sum of its squares
    count = 0.0
    for left in range(tl.cdiv(m, BLOCK), 0, -1):
        cols = (left - 1) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        n = tl.sum((cols < m).to(tl.float32), axis=0)
        # Around the block's own mean, then around the shift, by the distance of both.
        mean = shift + tl.sum(tl.where(cols < m, x - shift, 0.0), axis=0) / n
        d = tl.where(cols < m, x - mean, 0.0)
        rest = tl.sum(d, axis=0)
        gap = mean - shift
        second += tl.sum(d * d, axis=0) + gap * (2.0 * rest + n * gap)
        first += rest + n * gap
        count += n
        # The shift moves to the mean so far.
        moved = shift + first / count
        step = moved - shift
        second -= step * (2.0 * first - count * step)
        first -= count * step
        shift = moved
    rest_of_mean = first / m  # the mean is shift + rest_of_mean; their sum would be rounded
    variance = second / m - rest_of_mean * rest_of_mean
    variance = tl.maximum(variance, 0.0, propagate_nan=tl.PropagateNan.ALL)
    scale = 1.0 / tl.sqrt(variance + eps)
    for left in range(tl.cdiv(m, BLOCK), 0, -1):
        cols = (left - 1) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, (x - shift - rest_of_mean) * scale * weight + bias, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    if x.numel():
        BLOCK = min(1024, triton.next_power_of_2(m))
        kernel[(x.numel() // m,)](x, weight, bias, out, m, eps, BLOCK=BLOCK)
    return out
