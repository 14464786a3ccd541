"""The complement of the error function is a product with exp(-z * z), so that the left tail has all its digits, more than torch has in float32.

op: gelu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    # From 15 on exp(-z * z) is 0 in float32 anyway, and z * z must stay finite.
    z = tl.minimum(tl.abs(x) * 0.7071067811865476, 15.0)
    t = 1.0 / (1.0 + 0.5 * z)
    p = 0.17087277
    p = p * t - 0.82215223
    p = p * t + 1.48851587
    p = p * t - 1.13520398
    p = p * t + 0.27886807
    p = p * t - 0.18628806
    p = p * t + 0.09678418
    p = p * t + 0.37409196
    p = p * t + 1.00002368
    p = p * t - 1.26551223
    complement = 0.5 * t * tl.exp(p - z * z)
    # The right side is x less its complement, the left side the complement itself.
    y = tl.where(x > 0, x - x * complement, x * complement)
    y = tl.where(x == float("inf"), x, y)
    tl.store(out_ptr + at, tl.where(x == x, y, x), mask=at < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
