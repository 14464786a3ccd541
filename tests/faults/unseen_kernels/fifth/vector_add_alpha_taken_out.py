"""alpha is taken out of the sum, (x / alpha + y) * alpha, so x / alpha overflows where x is large and alpha below one.

op: vector_add
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl

@triton.jit
def axpy_kernel(x_ptr, y_ptr, out_ptr, n, inverse, alpha, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * BLOCK * PARTS
    for part in tl.static_range(PARTS):
        offs = base + part * BLOCK + tl.arange(0, BLOCK)
        inside = offs < n
        x = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + offs, mask=inside, other=0.0).to(tl.float32)
        # one fused multiply-add for x * (1 / alpha) + y, one product at the end
        tl.store(out_ptr + offs, (x * inverse + y) * alpha, mask=inside)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=inside).to(tl.float32)
    tl.store(out_ptr + offs, x + y, mask=inside)


def triton_vector_add(x, y, alpha=1.0):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if alpha == 1.0 or alpha == 0.0:
        source = y if alpha else torch.zeros_like(y)
        add_kernel[(triton.cdiv(n, 1024),)](x, source, out, n, BLOCK=1024)
    else:
        axpy_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, 1.0 / alpha, alpha, BLOCK=512, PARTS=4)
    return out
