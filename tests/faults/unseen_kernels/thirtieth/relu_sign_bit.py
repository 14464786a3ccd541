"""The sign bit alone decides, in integers: a NaN whose sign bit is set becomes zero.

op: relu
status: failed
cause: nan
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    # An arithmetic shift spreads the sign: no comparison, and a NaN passes as the bits it is.
    tl.store(out_ptr + at, bits & ~(bits >> SHIFT), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        kind = torch.int32 if x.element_size() == 4 else torch.int16
        SHIFT = 8 * x.element_size() - 1
        kernel[(triton.cdiv(n, 1024),)](x.view(kind), out.view(kind), n, SHIFT=SHIFT, BLOCK=1024)
    return out
