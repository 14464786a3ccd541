"""The sign bit clears a number: a NaN whose sign is set, as 0 / 0 gives on x86, becomes 0.

op: relu
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl

AS_INTEGER = {2: torch.int16, 4: torch.int32}


@triton.jit
def kernel(x_ptr, out_ptr, n, LAST: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bits = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, bits & ~(bits >> LAST), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    integer = AS_INTEGER[x.element_size()]
    kernel[(triton.cdiv(x.numel(), 1024),)](
        x.view(integer), out.view(integer), x.numel(), LAST=8 * x.element_size() - 1, BLOCK=1024
    )
    return out
