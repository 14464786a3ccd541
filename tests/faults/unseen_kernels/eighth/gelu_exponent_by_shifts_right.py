"""exp is built from its exponent's bits, limited to what a normal number holds.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fast_exp(y):
    t = y * 1.4426950408889634
    t = tl.where(t < -126.0, -126.0, t)
    n = tl.floor(t + 0.5)
    f = (t - n) * 0.6931471805599453
    p = 1.0 + f * (1.0 + f * (0.5 + f * (0.16666667 + f * (0.041666668 + f * (0.008333334 + f * (0.0013888889 + f * 0.0001984127))))))
    power = ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return p * power


@triton.jit
def erfc(z):
    t = 1.0 / (1.0 + 0.5 * z)
    s = -0.82215223 + t * 0.17087277
    s = -1.13520398 + t * (1.48851587 + t * s)
    s = -0.18628806 + t * (0.27886807 + t * s)
    s = 0.37409196 + t * (0.09678418 + t * s)
    s = -1.26551223 + t * (1.00002368 + t * s)
    return t * fast_exp(s - z * z)


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tail = 0.5 * erfc(tl.abs(x) * 0.7071067811865476)
    tl.store(out_ptr + offsets, x * tl.where(x < 0, tail, 1.0 - tail), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
