"""Values are added as 64-bit whole numbers in units of the first block's largest value: a row that grows by many orders of magnitude overflows them.

op: sum
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def power_of_two(k):
    return ((k + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def kernel(x_ptr, out_ptr, m, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """Adds whole numbers: the sum is the same in every order, on every device."""
    row = tl.program_id(0).to(tl.int64)
    plain = tl.zeros((BLOCK,), dtype=tl.float32)  # tells where Inf or NaN is among the values
    total = tl.zeros((BLOCK,), dtype=tl.int64)
    valid = row < 0  # whether the unit is: not before the first value that is not zero
    unit = tl.full((), 0, dtype=tl.int32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
        plain += x
        x = tl.where(tl.abs(x) < float("inf"), x, 0.0)
        largest = tl.max(tl.abs(x), axis=0)
        exponent = (largest.to(tl.int32, bitcast=True) >> 23) - 127
        unit = tl.where(valid, unit, BITS - exponent)
        valid = valid | (largest > 0)
        # In two steps: one factor alone may be past float32.
        scaled = x * power_of_two(unit >> 1) * power_of_two(unit - (unit >> 1))
        total += scaled.to(tl.int64)
    result = tl.sum(total, axis=0).to(tl.float32)
    result = result * power_of_two(-(unit >> 1)) * power_of_two((unit >> 1) - unit)
    plain_sum = tl.sum(plain, axis=0)
    tl.store(out_ptr + row, tl.where(tl.abs(plain_sum) < float("inf"), result, plain_sum))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel():
        # 36 bits for a value, 27 for their number and for larger ones.
        kernel[(out.numel(),)](x, out, m, BITS=36, BLOCK=min(1024, triton.next_power_of_2(m)))
    return out
