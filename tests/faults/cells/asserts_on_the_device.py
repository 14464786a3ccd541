"""A `tl.device_assert` that does not hold.

status: runtime_error
sees: offsets are not negative
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.device_assert(offsets < 0, "offsets are not negative")
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=16)
    return out
