"""A raw Triton kernel: two programs write each element.

op: scaled
status: wrong_values
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask) * alpha
    tl.store(y + offsets, value, mask=mask)
    tl.store(y + (offsets + BLOCK_SIZE) % n, value * 2, mask=mask)
