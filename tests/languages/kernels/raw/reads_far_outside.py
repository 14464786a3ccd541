"""A raw Triton kernel: it reads a terabyte behind its input.

op: scaled
status: runtime_error
interpreted: crashed
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    value = tl.load(x + (offsets.to(tl.int64) + (1 << 38)), mask=mask)
    tl.store(y + offsets, value * alpha, mask=mask)
