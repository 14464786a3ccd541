"""The sign bit clears all negative numbers, and a NaN of either sign is saved.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(bits_ptr, out_ptr, n, LAST: tl.constexpr, INF: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(bits_ptr + offsets, mask=mask, other=0)
    positive = bits & ~(bits >> LAST)
    positive = tl.where((bits & (INF | (INF - 1))) > INF, bits, positive)
    tl.store(out_ptr + offsets, positive, mask=mask)


INTEGERS = {torch.float32: (torch.int32, 0x7F800000), torch.float16: (torch.int16, 0x7C00), torch.bfloat16: (torch.int16, 0x7F80)}


def triton_relu(x):
    x = x.contiguous()
    integer, infinity = INTEGERS[x.dtype]
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x.view(integer), out.view(integer), n, LAST=8 * x.element_size() - 1, INF=infinity, BLOCK=1024
    )
    return out
