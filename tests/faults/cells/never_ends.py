"""A kernel that waits for what nobody writes.

class: wrapper
status: timeout
timeout: 2
sees: while calling it(?s:.*)at cell line
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    value = tl.load(x_ptr)
    while value == value:
        value = tl.load(x_ptr, volatile=True)
    tl.store(out_ptr + tl.arange(0, BLOCK), 0.0)


def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=16)
    return out
