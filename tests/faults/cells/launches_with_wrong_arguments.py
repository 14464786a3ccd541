"""A launch that lacks an argument.

class: kernel
status: runtime_error
sees: cell line
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=16)
    return out
