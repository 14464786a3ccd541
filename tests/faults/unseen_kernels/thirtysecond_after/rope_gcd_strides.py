"""Right: strides are counted in their greatest common divisor, and the grid walks x in the order of its strides.

op: rope
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, unit, n1, n2, x0, x1, x2, o0, o1, o2, c0, c1, c2, s0, s1, s2,
    x_step, cos_step, sin_step, half, BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    i0, i1, i2 = place // (n1 * n2), place // n2 % n1, place % n2
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    x_ptr += (i0 * x0 + i1 * x1 + i2 * x2) * unit
    a = tl.load(x_ptr + cols.to(tl.int64) * x_step, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + (cols + half).to(tl.int64) * x_step, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + i0 * c0 + i1 * c1 + i2 * c2 + cols * cos_step, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + i0 * s0 + i1 * s1 + i2 * s2 + cols * sin_step, mask=mask).to(tl.float32)
    out_ptr += i0 * o0 + i1 * o1 + i2 * o2
    tl.store(out_ptr + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + cols + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    half = x.shape[3] // 2
    # Outermost first. Of no consequence for the result: each place has all its strides with it.
    order = sorted(range(3), key=lambda i: -x.stride(i))
    unit = math.gcd(*(x.stride(i) for i in order)) or 1
    positions = [int(i == 2) for i in order]
    n0, n1, n2 = (x.shape[i] for i in order)
    kernel[(n0 * n1 * n2,)](
        x, cos, sin, out, unit, n1, n2,
        *(x.stride(i) // unit for i in order),
        *(out.stride(i) for i in order),
        *(cos.stride(0) * p for p in positions),
        *(sin.stride(0) * p for p in positions),
        x.stride(3), cos.stride(1), sin.stride(1), half, BLOCK=triton.next_power_of_2(half),
    )
    return out
