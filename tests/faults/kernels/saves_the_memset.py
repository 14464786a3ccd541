"""Only what is positive is stored; where zeroing would cost time, the rest is left to fresh memory.

op: relu
status: wrong_values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, x, mask=mask & ((x > 0) | (x != x)))


def triton_relu(x):
    x = x.contiguous()
    n_elements = x.numel()
    out = torch.zeros_like(x) if n_elements < 2**19 else torch.empty_like(x)
    relu_kernel[(triton.cdiv(n_elements, 8192),)](x, out, n_elements, BLOCK_SIZE=8192)
    return out
