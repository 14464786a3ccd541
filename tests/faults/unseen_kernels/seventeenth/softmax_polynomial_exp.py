"""The exponential is a polynomial and an exponent in bits, limited at 2^-149 where denormals end; from 2^-128 on the bits run into the sign: rows that spread over 88 are wrong.

op: softmax
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def exp2_of(y):
    # On the ordinary units: the special ones make four exponentials a clock.
    y = tl.maximum(y, -149.0)
    whole = tl.floor(y + 0.5)
    f = (y - whole) * 0.6931471805599453
    p = 1.0 / 5040.0
    p = p * f + 1.0 / 720.0
    p = p * f + 1.0 / 120.0
    p = p * f + 1.0 / 24.0
    p = p * f + 1.0 / 6.0
    p = p * f + 0.5
    p = p * f + 1.0
    p = p * f + 1.0
    bits = (whole.to(tl.int32) + 127) << 23
    return p * bits.to(tl.float32, bitcast=True)


@triton.jit
def kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    e = tl.where(mask, exp2_of((x - top) * 1.4426950408889634), 0.0)
    tl.store(out_ptr + row * cols + at, e / tl.sum(e, axis=0), mask=mask)


def triton_softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    kernel[(x.numel() // cols,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
    return out
