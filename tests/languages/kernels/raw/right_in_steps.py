"""A raw Triton kernel: each program takes its block in four steps.

op: scaled
status: passed
language: triton
"""

import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    for step in range(4):
        part = tl.program_id(0) * BLOCK_SIZE + step * (BLOCK_SIZE // 4)
        some = part + tl.arange(0, BLOCK_SIZE // 4)
        tl.store(y + some, tl.load(x + some, mask=some < n) * alpha, mask=some < n)
