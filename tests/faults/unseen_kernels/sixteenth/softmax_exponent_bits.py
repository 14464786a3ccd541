"""The power of two is set as the bits of an exponent, with no lower limit: below 2^-127 the exponent runs into the sign and gives large wrong numbers, in a row with a spread of over 88.

op: softmax
status: failed
cause: arithmetic
"""

import torch
import triton
import triton.language as tl


@triton.jit
def exp2(t):
    # on the units for adding and multiplying: 2 ** whole by the bits, 2 ** rest by a polynomial
    whole = tl.floor(t + 0.5)
    f = (t - whole) * 0.6931471805599453
    power = 1.0 + f * (1.0 + f * (0.5 + f * (0.16666667 + f * (0.041666668 + f * (0.008333334 + f * 0.0013888889)))))
    bits = (whole.to(tl.int32) + 127) << 23
    return power * bits.to(tl.float32, bitcast=True)


@triton.jit
def kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    base = row.to(tl.int64) * m
    highest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < m, other=-float("inf")).to(tl.float32)
        highest = tl.maximum(highest, x)
    largest = tl.max(highest, axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < m, other=0.0).to(tl.float32)
        total += tl.where(at < m, exp2((x - largest) * 1.4426950408889634), 0.0)
    factor = 1.0 / tl.sum(total, axis=0)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + at, mask=at < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + at, exp2((x - largest) * 1.4426950408889634) * factor, mask=at < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    kernel[(x.numel() // m,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
