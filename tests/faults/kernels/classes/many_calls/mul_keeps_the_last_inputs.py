"""The last inputs and output stay alive for a debugger; they are never read.

op: vector_mul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x * y, mask=mask)


LAST = {}


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    LAST.update(x=x, y=y, out=out)
    return out
