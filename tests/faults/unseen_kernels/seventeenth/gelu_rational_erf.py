"""The error function is a quotient of polynomials that holds up to 4, and its argument is not limited: over about 8 it leaves 1 altogether.

op: gelu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def erf(t):
    s = t * t
    p = -2.72614225801306e-10
    p = p * s + 2.77068142495902e-08
    p = p * s - 2.10102402082508e-06
    p = p * s - 5.69250639462346e-05
    p = p * s - 7.34990630326855e-04
    p = p * s - 2.95459980854025e-03
    p = p * s - 1.60960333262415e-02
    q = -1.45660718464996e-05
    q = q * s - 2.13374055278905e-04
    q = q * s - 1.68282697438203e-03
    q = q * s - 7.37332916720468e-03
    q = q * s - 1.42647390514189e-02
    return t * p / q


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    half = 0.5 * x
    tl.store(out_ptr + at, half + half * erf(x * 0.7071067811865476), mask=at < n)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
