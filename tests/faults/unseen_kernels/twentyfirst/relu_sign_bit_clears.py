"""The sign bit clears all bits: a NaN with the sign bit, as inf - inf gives on a CPU, becomes 0.

op: relu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    # The sign, spread over all bits, clears negative numbers; everything else, NaN too, passes.
    negative = bits >> SHIFT
    tl.store(out_ptr + at, bits & ~negative, mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer, shift = (torch.int32, 31) if x.element_size() == 4 else (torch.int16, 15)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](x.view(integer), out.view(integer), n, SHIFT=shift, BLOCK=1024)
    return out
