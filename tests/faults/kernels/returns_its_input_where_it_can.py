"""Where nothing is negative the input itself is returned, not a tensor of its own.

op: relu
status: aliased
"""

import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(x_ptr, count_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0.0)
    negative = (x < 0) | (x != x)
    tl.atomic_add(count_ptr, tl.sum(negative.to(tl.int32), axis=0))


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x).to(x.dtype), mask=mask)


def triton_relu(x):
    given, x = x, x.contiguous()
    n_elements = x.numel()
    grid = (triton.cdiv(n_elements, 1024),)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    count_kernel[grid](x, count, n_elements, BLOCK_SIZE=1024)
    if count.item() == 0:
        return given
    out = torch.empty_like(x)
    relu_kernel[grid](x, out, n_elements, BLOCK_SIZE=1024)
    return out
