"""Nothing wrong: whole blocks without a mask, then as many programs as the tail needs.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def block_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + places)
    tl.store(out_ptr + places, tl.where(x < 0, 0.0, x))  # NaN is not less


@triton.jit
def tail_kernel(x_ptr, out_ptr, first, n, BLOCK: tl.constexpr):
    places = first + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = places < n
    x = tl.load(x_ptr + places, mask=mask, other=0.0)
    tl.store(out_ptr + places, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out, n = torch.empty_like(x), x.numel()
    whole = n // 4096 if n >= 16_384 else 0
    if whole:
        block_kernel[(whole,)](x, out, BLOCK=4096, num_warps=8)
    left = n - whole * 4096
    if left:
        tail_kernel[(triton.cdiv(left, 1024),)](x, out, whole * 4096, n, BLOCK=1024)
    return out
