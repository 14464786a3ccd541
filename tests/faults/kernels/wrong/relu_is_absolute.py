"""The sign is dropped instead of the value.

op: relu
status: wrong_values
from: relu_on_a_copy
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(x_ptr + offsets, tl.abs(x), mask=mask)


def triton_relu(x):
    out = x.clone(memory_format=torch.contiguous_format)
    kernel[(triton.cdiv(out.numel(), 2048),)](out, out.numel(), BLOCK=2048)
    return out
