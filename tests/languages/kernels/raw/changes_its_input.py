"""A raw Triton kernel: it scales its input too.

op: scaled
status: mutated_input
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    value = tl.load(x + offsets, mask=mask) * alpha
    tl.store(x + offsets, value, mask=mask)
    tl.store(y + offsets, value, mask=mask)
