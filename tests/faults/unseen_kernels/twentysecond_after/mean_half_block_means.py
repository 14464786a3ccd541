"""The means of blocks go to the second kernel in float16 for both 16-bit dtypes: it has more bits than bfloat16, but not its range, so values of 1e-7 vanish and those of 1e5 become infinite.

op: mean
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def block_kernel(x_ptr, part_ptr, width, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    cols = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * width + cols, mask=cols < width, other=0.0).to(tl.float32)
    # the mean, not the sum: it does not exceed the range of the values
    tl.store(part_ptr + row * blocks + block, tl.sum(x, axis=0) / BLOCK)


@triton.jit
def join_kernel(part_ptr, out_ptr, width, blocks, BLOCK: tl.constexpr, MANY: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, MANY)
    part = tl.load(part_ptr + row * blocks + at, mask=at < blocks, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(part, axis=0) * BLOCK / width)


def triton_mean(x):
    x = x.contiguous()
    width = x.shape[-1]
    rows = x.numel() // width
    block = 1024
    blocks = triton.cdiv(width, block)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    # float16 has three bits more than bfloat16: exact enough for both
    part_dtype = torch.float32 if x.dtype == torch.float32 else torch.float16
    part = torch.empty((rows, blocks), dtype=part_dtype, device=x.device)
    block_kernel[(rows, blocks)](x, part, width, blocks, BLOCK=block)
    join_kernel[(rows,)](part, out, width, blocks, BLOCK=block, MANY=triton.next_power_of_2(blocks))
    return out
