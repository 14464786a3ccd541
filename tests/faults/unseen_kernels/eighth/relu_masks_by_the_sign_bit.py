"""The sign bit clears all negative numbers; a NaN whose sign bit is set, as Inf - Inf gives on x86, becomes 0.

op: relu
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(bits_ptr, out_ptr, n, LAST: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(bits_ptr + offsets, mask=mask, other=0)
    positive = bits & ~(bits >> LAST)
    tl.store(out_ptr + offsets, positive, mask=mask)


INTEGERS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def triton_relu(x):
    x = x.contiguous()
    integer = INTEGERS[x.dtype]
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x.view(integer), out.view(integer), n, LAST=8 * x.element_size() - 1, BLOCK=1024
    )
    return out
