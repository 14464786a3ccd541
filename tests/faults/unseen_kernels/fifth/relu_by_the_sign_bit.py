"""In float32 every word with its sign bit set becomes zero, a NaN with that bit too, as 0 / 0 gives it on a CPU.

op: relu
status: failed
cause: nan
"""

import torch
import triton
import triton.language as tl

@triton.jit
def bits_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    word = tl.load(x_ptr + offs, mask=inside, other=0.0).to(tl.int32, bitcast=True)
    cached = word & ~(word >> 31)  # an arithmetic shift: all ones for a negative number
    tl.store(out_ptr + offs, cached.to(tl.float32, bitcast=True), mask=inside)


@triton.jit
def half_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + offs, mask=inside, other=0.0)
    tl.store(out_ptr + offs, tl.where(x < 0, 0.0, x), mask=inside)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    kernel = bits_kernel if x.dtype == torch.float32 else half_kernel
    kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out
