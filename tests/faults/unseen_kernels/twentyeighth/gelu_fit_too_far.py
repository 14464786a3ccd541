"""A polynomial that is fitted where |x| < 10 is used up to 12; beyond about 10.7 it changes its sign, so 11 becomes 0 and -11 stays.

op: gelu
status: failed
cause: fit_range
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n_elements, LIMIT: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    # The normal distribution is a sigmoid of x times a polynomial of x * x: an exp2 instead of
    # erf with its two branches. The error is below 1e-7.
    t = x * x
    z = t * -2.7826348765011664e-11 + 5.272630428720924e-09
    z = z * t - 3.045279210533986e-07
    z = z * t + 8.351132071350406e-06
    z = z * t - 1.1280289425083759e-04
    z = z * t - 5.974388188698739e-05
    z = z * t + 0.07266045585832433
    z = z * t + 1.595771672375827
    y = x / (1.0 + tl.exp2(z * x * -1.4426950408889634))
    # Far outside it is a relu; NaN and infinities go there too.
    y = tl.where(tl.abs(x) < LIMIT, y, tl.where(x < 0.0, 0.0, x))
    tl.store(out_ptr + offsets, y, mask=mask)


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        gelu_kernel[(triton.cdiv(n_elements, 1024),)](x, out, n_elements, LIMIT=12.0, BLOCK=1024)
    return out
