"""The sign bit decides on the bits of the number, but bits above those of infinity are a NaN and stay.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, MAGNITUDE: tl.constexpr, INFINITY: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, tl.where((bits < 0) & ((bits & MAGNITUDE) <= INFINITY), 0, bits), mask=at < n)


def triton_relu(x):
    # An integer comparison with 0 is that of the sign bit: only a NaN needs a second one.
    x = x.contiguous()
    out = torch.empty_like(x)
    whole = torch.int32 if x.element_size() == 4 else torch.int16
    magnitude = torch.iinfo(whole).max
    infinity = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}[x.dtype]
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x.view(whole), out.view(whole), x.numel(), MAGNITUDE=magnitude, INFINITY=infinity, BLOCK=1024
    )
    return out
