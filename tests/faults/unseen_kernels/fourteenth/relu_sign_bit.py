"""The sign bit decides on the bits of the number: a NaN with that bit set, as inf - inf is on x86, becomes 0.

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
    tl.store(out_ptr + at, tl.where(bits < 0, 0, bits), mask=at < n)


def triton_relu(x):
    # An integer comparison with 0 is that of the sign bit: no conversion of half types, no NaN rules.
    x = x.contiguous()
    out = torch.empty_like(x)
    whole = torch.int32 if x.element_size() == 4 else torch.int16
    kernel[(triton.cdiv(x.numel(), 1024),)](x.view(whole), out.view(whole), x.numel(), BLOCK=1024)
    return out
