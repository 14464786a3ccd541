"""The value is max(x, 0) less |x| times the normal distribution's tail: at infinity that is infinity less infinity times 0, NaN.

op: gelu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    size = tl.abs(x)
    # Abramowitz and Stegun 7.1.26: erfc as a polynomial times an exponential, for size >= 0.
    t = 1.0 / (1.0 + 0.3275911 * 0.7071067811865476 * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = 0.5 * series * tl.exp(-0.5 * size * size)
    y = tl.where(x < 0.0, 0.0, x) - size * tail
    tl.store(out_ptr + at, y, mask=at < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
