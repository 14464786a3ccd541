"""A raw Triton kernel: it stores one element behind its output.

op: scaled
status: out_of_bounds
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    value = tl.load(x + offsets, mask=offsets < n) * alpha
    tl.store(y + offsets, value, mask=offsets < n + 1)
