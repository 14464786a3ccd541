"""The sign bit decides, on the bit patterns; NaN of either sign stays.

op: relu
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, INFINITY: tl.constexpr, LARGEST: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(x_ptr + offsets, mask=mask, other=0)
    is_nan = (bits & LARGEST) > INFINITY
    tl.store(out_ptr + offsets, tl.where((bits < 0) & (is_nan == 0), 0, bits), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integers = torch.int32 if x.dtype == torch.float32 else torch.int16
    LARGEST = torch.iinfo(integers).max
    INFINITY = {torch.float32: 0x7F800000, torch.float16: 0x7C00, torch.bfloat16: 0x7F80}[x.dtype]
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x.view(integers), out.view(integers), n, INFINITY=INFINITY, LARGEST=LARGEST, BLOCK=1024
    )
    return out
