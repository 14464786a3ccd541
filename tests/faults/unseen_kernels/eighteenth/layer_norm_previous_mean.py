"""A program shifts each row by the mean of its previous row before it adds the squares: rows that differ in their mean by 1e4 lose the variance.

op: layer_norm
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, rows, m, eps, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
    # Sum and sum of squares in one go; rows of a batch lie at about one level, so the last mean is a good shift.
    shift = tl.load(x_ptr + tl.program_id(0).to(tl.int64) * m).to(tl.float32)
    for row in range(tl.program_id(0), rows, PROGRAMS):
        at = row * m + cols
        x = tl.load(x_ptr + at, mask=cols < m, other=0.0).to(tl.float32)
        moved = tl.where(cols < m, x - shift, 0.0)
        first = tl.sum(moved, axis=0) / m
        second = tl.sum(moved * moved, axis=0) / m
        variance = tl.maximum(second - first * first, 0.0)
        y = (moved - first) / tl.sqrt(variance + eps) * weight + bias
        tl.store(out_ptr + at, y, mask=cols < m)
        shift = shift + first


def triton_layer_norm(x, weight, bias, eps=1e-05):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    programs = min(rows, 32)
    kernel[(programs,)](
        x, weight, bias, out, rows, m, eps, PROGRAMS=programs, BLOCK=triton.next_power_of_2(m)
    )
    return out
