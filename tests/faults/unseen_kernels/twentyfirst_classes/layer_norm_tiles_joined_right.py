"""Mean and squared distances of each tile are joined with Chan's formula: right for tiles of different levels.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    mean = 0.0
    squares = 0.0
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        before = start * 1.0
        size = tl.minimum(BLOCK, m - start) * 1.0
        tile_mean = tl.sum(x, axis=0) / size
        centred = tl.where(cols < m, x - tile_mean, 0.0)
        delta = tile_mean - mean
        share = size / (before + size)
        squares += tl.sum(centred * centred, axis=0) + delta * delta * before * share
        mean += delta * share
    factor = 1.0 / tl.sqrt(squares / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, (x - mean) * factor * weight + bias, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    block = min(512, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, weight, bias, out, m, float(eps), BLOCK=block)
    return out
