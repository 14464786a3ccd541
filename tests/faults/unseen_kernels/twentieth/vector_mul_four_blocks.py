"""Above 512 blocks a program takes four, and the grid is rounded down: up to three last blocks are not written above half a million elements, unless the blocks are a multiple of four.

op: vector_mul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, PER: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * (PER * BLOCK)
    for i in range(PER):
        at = first + i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, x * y, mask=at < n)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    blocks = triton.cdiv(x.numel(), 1024)
    per = 4 if blocks > 512 else 1
    kernel[(blocks // per,)](x, y, out, x.numel(), PER=per, BLOCK=1024)
    return out
