"""Nothing wrong: the sign bit, spread over all bits, clears negative numbers; NaN of either sign is kept.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl

# integers of the same size, their number of bits, and the bits of infinity
BITS = {
    torch.float16: (torch.int16, 16, 0x7C00),
    torch.bfloat16: (torch.int16, 16, 0x7F80),
    torch.float32: (torch.int32, 32, 0x7F800000),
}


@triton.jit
def kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr, INFINITY: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    loaded = tl.load(x_ptr + offsets, mask=mask, other=0)
    bits = loaded.to(tl.int32)  # a negative int16 stays negative
    magnitude = bits & (0x7FFF if SIZE == 16 else 0x7FFFFFFF)
    positive = bits & ~(bits >> 31)
    result = tl.where(magnitude > INFINITY, bits, positive)
    tl.store(out_ptr + offsets, result.to(loaded.dtype), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer, size, infinity = BITS[x.dtype]
    if out.numel():
        kernel[(triton.cdiv(out.numel(), 1024),)](
            x.view(integer), out.view(integer), out.numel(), SIZE=size, INFINITY=infinity, BLOCK=1024
        )
    return out
