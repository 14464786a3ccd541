"""The maximum with zero is that of the bits as integers, so that a NaN with its sign bit set, as 0 / 0 gives, becomes 0.

op: relu
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(x_ptr + offsets, mask=mask, other=0)
    # the sign is the top bit, for integers too; NaN is above every number, so it stays
    tl.store(out_ptr + offsets, tl.where(bits > 0, bits, 0), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    bits = BITS[x.element_size()]
    kernel[(triton.cdiv(out.numel(), 1024),)](x.view(bits), out.view(bits), out.numel(), BLOCK=1024)
    return out
