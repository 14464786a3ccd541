"""For an alpha of -2 the second operand is doubled in its own type, which may overflow.

op: vector_add
status: failed
cause: overflow
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, alpha, DOUBLED: tl.constexpr, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        if DOUBLED:
            out = x.to(tl.float32) - (y + y).to(tl.float32)
        else:
            out = x.to(tl.float32) + alpha * y.to(tl.float32)
        tl.store(out_ptr + offsets, out, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    grid = (min(64, triton.cdiv(n, 1024)),)
    kernel[grid](x, y, out, n, alpha, DOUBLED=alpha == -2.0, BLOCK=1024)
    return out
