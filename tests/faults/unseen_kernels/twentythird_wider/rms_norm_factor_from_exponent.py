"""The running sum of squares is rescaled by a power of two made from exponent bits, which go below zero where a row grows by more than 2^63 from one block to the next.

op: rms_norm
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def power_of_two(exponent):
    return ((127 + exponent) << 23).to(tl.float32, bitcast=True)


@triton.jit
def exponent_of(x):
    largest = tl.max(tl.abs(x), axis=0)
    bits = (largest.to(tl.int32, bitcast=True) >> 23) & 255
    return tl.minimum(tl.maximum(bits, 1), 253) - 127


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
    # Squares are taken in units of 2^exponent, the largest so far: those of 1e30 do not overflow.
    exponent = exponent_of(x)
    x *= power_of_two(-exponent)
    total = tl.sum(x * x, axis=0)
    for start in range(BLOCK, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
        new = tl.maximum(exponent, exponent_of(x))
        x *= power_of_two(-new)
        total = total * power_of_two(2 * (exponent - new)) + tl.sum(x * x, axis=0)
        exponent = new
    unit = power_of_two(tl.minimum(exponent, 40))
    # Beyond 2^40 eps is nothing beside the squares.
    small = 1.0 / tl.sqrt(total / m * unit * unit + eps)
    large = power_of_two(-exponent) / tl.sqrt(total / m)
    scale = tl.where(exponent > 40, large, small)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < m).to(tl.float32)
        tl.store(out_ptr + row + cols, x * scale * w, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, weight, out, m, eps, BLOCK=512)
    return out
