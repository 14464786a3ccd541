"""Count, mean and squared distance of a row less its first element are reduced together by a tree of Welford's combinations, with a count of zero past the row.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(count_a, mean_a, dist_a, count_b, mean_b, dist_b):
    count = count_a + count_b
    share = tl.where(count > 0.0, count_b / tl.maximum(count, 1.0), 0.0)
    delta = mean_b - mean_a
    return count, mean_a + delta * share, dist_a + dist_b + delta * delta * count_a * share


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    first = tl.load(x_ptr + row).to(tl.float32)
    count = 0.0
    mean = 0.0
    dist = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
        x = tl.where(cols < m, x - first, 0.0)
        ones = (cols < m).to(tl.float32)
        more, centre, spread = tl.reduce((ones, x, tl.zeros_like(x)), 0, combine)
        count, mean, dist = combine(count, mean, dist, more, centre, spread)
    factor = 1.0 / tl.sqrt(dist / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + row + cols, (x - first - mean) * factor * weight + bias, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, weight, bias, out, m, eps, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
