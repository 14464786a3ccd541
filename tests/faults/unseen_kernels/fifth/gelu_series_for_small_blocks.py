"""A block whose largest element is below 1.5 takes the power series of erf, whatever its most negative element is.

op: gelu
status: failed
cause: wrong range
"""

import torch
import triton
import triton.language as tl

@triton.jit
def erf_small(z):
    s = z * z
    term = z
    total = z
    for n in tl.static_range(1, 14):
        term = term * s * (-1.0 / n)
        total += term * (1.0 / (2 * n + 1))
    return total * 1.1283791670955126


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
    z = x * 0.7071067811865476
    if tl.max(x, axis=0) < 1.5:
        y = 0.5 * x * (1.0 + erf_small(z))
    else:
        y = 0.5 * x * (1.0 + tl.erf(z))
    tl.store(out_ptr + offs, y, mask=inside)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
