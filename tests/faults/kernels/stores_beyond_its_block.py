"""Each program stores one element too many; in the interpreter the next program corrects it.

op: vector_mul
status: race
"""

import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    at = start + tl.arange(0, 2 * BLOCK_SIZE)
    own = (at < start + BLOCK_SIZE) & (at < n)
    product = tl.load(x_ptr + at, mask=own, other=0.0) * tl.load(y_ptr + at, mask=own, other=0.0)
    tl.store(out_ptr + at, product, mask=(at <= start + BLOCK_SIZE) & (at < n))


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    mul_kernel[(triton.cdiv(x.numel(), 16),)](x, y, out, x.numel(), BLOCK_SIZE=16)
    return out
