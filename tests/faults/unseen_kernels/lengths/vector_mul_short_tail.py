"""From 65,536 elements: whole blocks of 4,096, and one program, which does 1,024 of the tail.

op: vector_mul
status: failed
cause: length
"""

import torch
import triton
import triton.language as tl


@triton.jit
def block_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places).to(tl.float32)
    y = tl.load(y_ptr + places).to(tl.float32)
    tl.store(out_ptr + places, x * y)


@triton.jit
def tail_kernel(x_ptr, y_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    places = first + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + places, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, x * y, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n < 65_536:
        tail_kernel[(triton.cdiv(n, 1024),)](x, y, out, 0, n, BLOCK=1024)
        return out
    whole = n // 4096
    block_kernel[(whole,)](x, y, out, BLOCK=4096, num_warps=8)
    if n % 4096:
        tail_kernel[(1,)](x, y, out, whole * 4096, n, BLOCK=1024)
    return out
