"""The polynomial for erf holds for |z| only and its result is not given the sign of x, so negative x get erf(|z|).

It shows at x of shape (7, 13), float32, any negative element.

op: gelu
status: failed
cause: sign
"""

import torch
import triton
import triton.language as tl


@triton.jit
def erf(z):
    a = tl.abs(z)
    t = 1.0 / (1.0 + 0.3275911 * a)
    poly = 1.061405429
    poly = poly * t - 1.453152027
    poly = poly * t + 1.421413741
    poly = poly * t - 0.284496736
    poly = poly * t + 0.254829592
    return 1.0 - poly * t * tl.exp(-a * a)


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + erf(x * 0.7071067811865476)), mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(out.numel(), 512),)](x, out, out.numel(), BLOCK=512)
    return out
