"""The maximum with zero is taken of the bits as signed integers, which negative floats are as well: a NaN with the sign bit becomes 0.

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
    # A NaN has large bits, so unlike the maximum of floats this one passes it on.
    tl.store(out_ptr + at, tl.where(bits > 0, bits, 0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    kernel[(triton.cdiv(x.numel(), 1024),)](x.view(whole), out.view(whole), x.numel(), BLOCK=1024)
    return out
