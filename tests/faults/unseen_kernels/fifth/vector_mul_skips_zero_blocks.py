"""A block of x that is all zero is not multiplied: its output is zero even where y is NaN or infinite.

op: vector_mul
status: failed
cause: nonfinite
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    for start in range(first, n, step):
        offs = start + tl.arange(0, BLOCK)
        inside = offs < n
        x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
        alive = tl.sum((x != 0.0).to(tl.int32), axis=0)
        if alive > 0:
            y = tl.load(y_ptr + offs, mask=inside, other=0.0).to(tl.float32)
            tl.store(out_ptr + offs, x * y, mask=inside)
        else:  # activations after a ReLU are often zero: y need not be read
            tl.store(out_ptr + offs, x, mask=inside)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel[(min(triton.cdiv(n, 512), 264),)](x, y, out, n, BLOCK=512)
    return out
