"""The output is allocated like the original x, and so has its transposed strides, but the kernel writes it in contiguous order.

It shows at x the transpose of a (13, 7), float32.

op: relu
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    out = torch.empty_like(x)
    flat = x.contiguous().view(-1)
    kernel[(triton.cdiv(flat.numel(), 1024),)](flat, out, flat.numel(), BLOCK=1024)
    return out
