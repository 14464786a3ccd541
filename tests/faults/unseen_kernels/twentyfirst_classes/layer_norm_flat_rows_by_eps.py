"""A row whose variance is no more than eps is taken for a constant one and becomes the bias: with an eps of 0.5 that is any row below it.

op: layer_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + cols, mask=cols < m, other=0.0).to(tl.float32)
        centred = tl.where(cols < m, x - mean, 0.0)
        squares += centred * centred
    variance = tl.sum(squares, axis=0) / m
    if variance <= eps:
        # Nothing but rounding is left of x - mean: do not blow it up, and spare the second read of x.
        for start in range(0, m, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            bias = tl.load(bias_ptr + cols, mask=cols < m, other=0.0)
            tl.store(out_ptr + base + cols, bias, mask=cols < m)
    else:
        factor = 1.0 / tl.sqrt(variance + eps)
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
    block = min(1024, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, weight, bias, out, m, float(eps), BLOCK=block)
    return out
