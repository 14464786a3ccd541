"""A relu with one fault of speed at a time: a large stride, spilled registers, or few warps."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, rows, STRIDE: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    source = (offsets % rows) * STRIDE + offsets // rows
    x = tl.load(x_ptr + source, mask=mask)
    tl.store(out_ptr + source, tl.maximum(x, 0), mask=mask)


@triton.jit
def spills_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n_elements, other=0.0)
    total = tl.sum(x, 0)  # every element stays alive until the sum is known
    x = tl.where(total == float("inf"), 0.0, tl.maximum(x, 0))
    tl.store(out_ptr + offsets, x, mask=offsets < n_elements)


@triton.jit
def few_warps_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    step = tl.num_programs(0) * BLOCK_SIZE
    for first in range(start, n_elements, step):
        offsets = first + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offsets, mask=offsets < n_elements)
        tl.store(out_ptr + offsets, tl.maximum(x, 0), mask=offsets < n_elements)


def triton_relu(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if SPILLS:
        grid = (triton.cdiv(n, 16384),)
        spills_kernel[grid](x, out, n, BLOCK_SIZE=16384, num_warps=4, maxnreg=64)
    elif FEW:
        few_warps_kernel[(264,)](x, out, n, BLOCK_SIZE=512, num_warps=4)
    else:
        grid = (triton.cdiv(n, 1024),)
        relu_kernel[grid](x, out, n, n // STRIDE, STRIDE=STRIDE, BLOCK_SIZE=1024)
    return out


STRIDE, SPILLS, FEW = 1, False, False
