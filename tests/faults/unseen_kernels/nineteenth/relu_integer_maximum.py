"""The bits are compared with zero as signed integers: a NaN with its sign bit set, as an x86 processor makes them, becomes zero.

op: relu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(bits_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + at, mask=at < n, other=0)
    # the sign of a float is the sign of its bits, and a NaN's bits stay as they are
    tl.store(out_ptr + at, tl.where(bits > 0, bits, 0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer = torch.int32 if x.dtype == torch.float32 else torch.int16
    kernel[(triton.cdiv(x.numel(), 1024),)](x.view(integer), out.view(integer), x.numel(), BLOCK=1024)
    return out
