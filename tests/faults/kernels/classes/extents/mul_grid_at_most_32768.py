"""A grid of at most 32,768 programs of at most 16,384 elements each.

op: vector_mul
status: failed
cause: truncated_extent
needs: gpu, its limit is 536,870,912 elements
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x * y, mask=mask)


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.zeros_like(x)
    n = x.numel()
    BLOCK = 1024 if n <= 1024 * 1024 * 32 else 16384
    kernel[(min(triton.cdiv(n, BLOCK), 1024 * 32),)](x, y, out, n, BLOCK=BLOCK)
    return out
