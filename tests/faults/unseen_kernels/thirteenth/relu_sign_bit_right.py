"""The sign bit decides, except beyond the bits of an infinity: NaN passes with and without it.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    y = tl.where(is_nan, x, (bits & ~(bits >> 31)).to(tl.float32, bitcast=True))
    tl.store(out_ptr + at, y, mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
