"""A store a terabyte past its tensor.

class: kernel
status: crashed
on a gpu: runtime_error
sees: SIGSEGV(?s:.*)at cell line
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK).to(tl.int64) + (1 << 38)
    tl.store(out_ptr + offsets, tl.load(x_ptr + tl.arange(0, BLOCK)))


def triton_relu(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out, BLOCK=16)
    return out
