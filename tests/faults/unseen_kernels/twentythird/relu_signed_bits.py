"""The bits are compared with zero as signed integers: a NaN whose sign bit is set becomes 0.

op: relu
status: failed
cause: negative_nan
"""

import torch
import triton
import triton.language as tl

AS_INTEGER = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + at, mask=at < n, other=0)
    # A float is negative where its bits are, as an integer. An integer maximum leaves NaN alone.
    tl.store(out_ptr + at, tl.maximum(bits, 0), mask=at < n)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        integer = AS_INTEGER[x.dtype]
        kernel[(triton.cdiv(n, 1024),)](x.view(integer), out.view(integer), n, BLOCK=1024)
    return out
