"""A raw Triton kernel: its loop has no step.

op: scaled
status: timeout
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask)
    while n > 0:
        tl.store(y + offsets, value * alpha, mask=mask)
