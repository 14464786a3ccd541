"""A raw Triton kernel: it adds where it should multiply.

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
    tl.store(y + offsets, tl.load(x + offsets, mask=mask) + alpha, mask=mask)
