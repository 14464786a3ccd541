"""x and y count as the same tensor if they start at the same address: x + alpha * x.T is wrong.

op: vector_add
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_two(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


@triton.jit
def add_itself(x_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    """Read the operand once: two thirds of the traffic."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * x, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    n = x.numel()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n == 0:
        return out
    block = 1024
    grid = (triton.cdiv(n, block),)
    if x.data_ptr() == y.data_ptr() and x.shape == y.shape:  # residual + itself
        add_itself[grid](x.contiguous(), out, float(alpha), n, BLOCK=block)
    else:
        add_two[grid](x.contiguous(), y.contiguous(), out, float(alpha), n, BLOCK=block)
    return out
