"""The sign bit clears the whole pattern: a NaN with the sign bit set, as inf - inf gives on x86, becomes 0.

op: relu
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, LAST: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    tl.store(out_ptr + at, bits & ~(bits >> LAST), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    bits = torch.int32 if x.element_size() == 4 else torch.int16
    n = x.numel()
    kernel[(triton.cdiv(n, 1024),)](
        x.view(bits), out.view(bits), n, LAST=8 * x.element_size() - 1, BLOCK=1024
    )
    return out
