"""The bits are compared as integers with zero: a NaN with its sign bit set, as x86 makes of inf - inf, becomes 0.

op: relu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    # A float with its sign bit set is a negative integer; NaN is a large positive one and stays.
    tl.store(out_ptr + at, tl.maximum(bits, 0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer = torch.int32 if x.element_size() == 4 else torch.int16
    kernel[(triton.cdiv(x.numel(), 1024),)](x.view(integer), out.view(integer), x.numel(), BLOCK=1024)
    return out
