"""The bits of a number as an integer say whether it is negative, and NaN with either sign passes.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, INFINITY: tl.constexpr, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    # As integers: below 0 is a sign bit, and without it anything above infinity is NaN.
    nan = (bits & LARGEST) > INFINITY
    tl.store(out_ptr + at, tl.where((bits < 0) & ~nan, 0, bits), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer, largest = (torch.int32, 0x7FFFFFFF) if x.element_size() == 4 else (torch.int16, 0x7FFF)
    infinity = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}[x.dtype]
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x.view(integer), out.view(integer), n, INFINITY=infinity, LARGEST=largest, BLOCK=1024
    )
    return out
