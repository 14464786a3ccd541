"""In place, on a copy of its own.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    out = x.clone(memory_format=torch.contiguous_format)
    kernel[(triton.cdiv(out.numel(), 2048),)](out, out.numel(), BLOCK=2048)
    return out
