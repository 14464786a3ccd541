"""The variance is taken about the mean of the row before: where neighbour rows have far means, it cancels.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 528


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, m, per, eps, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * per
    start = tl.load(x_ptr + first * m).to(tl.float32)
    shift = tl.where(tl.abs(start) < float("inf"), start, 0.0)
    for row in range(first, tl.minimum(first + per, rows)):
        base = row * m
        total = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        # One pass: distances to a value near the mean, so that their squares do not cancel.
        for begin in range(0, m, BLOCK):
            cols = begin + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
            away = tl.where(cols < m, x - shift, 0.0)
            total += away
            squares += away * away
        rest = tl.sum(total, axis=0) / m
        var = tl.sum(squares, axis=0) / m - rest * rest
        var = tl.where(var < 0.0, 0.0, var)
        scale = 1.0 / tl.sqrt(var + eps)
        for begin in range(0, m, BLOCK):
            cols = begin + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
            bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
            y = (x - shift - rest) * scale * weight + bias
            tl.store(out_ptr + base + cols, y, mask=cols < m)
        # The next row is like this one.
        mean = shift + rest
        shift = tl.where(tl.abs(mean) < float("inf"), mean, shift)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    rows = x.numel() // m
    per = triton.cdiv(rows, PROGRAMS)
    block = min(2048, triton.next_power_of_2(m))
    kernel[(triton.cdiv(rows, per),)](x, weight, bias, out, rows, m, per, eps, BLOCK=block)
    return out
