"""Adds a buffer that was never set.

op: relu
status: wrong_values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, buffer_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    more = tl.load(buffer_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0) + more, mask=mask)


def triton_relu(x):
    x = x.contiguous()
    buffer, out = torch.empty_like(x), torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 128),)](x, buffer, out, x.numel(), BLOCK=128)
    return out
