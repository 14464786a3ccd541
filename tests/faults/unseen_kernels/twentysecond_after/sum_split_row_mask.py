"""Few long rows are split over programs whose last block is masked at the end of the row, not of the split: where a split is no multiple of the block, elements are added twice.

op: sum
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(x_ptr, part_ptr, width, length, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        cols = split * length + start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * width + cols, mask=cols < width, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * tl.num_programs(1) + split, tl.sum(acc, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, splits, MANY: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, MANY)
    part = tl.load(part_ptr + row * splits + at, mask=at < splits, other=0.0)
    tl.store(out_ptr + row, tl.sum(part, axis=0))


def triton_sum(x):
    x = x.contiguous()
    width = x.shape[-1]
    rows = x.numel() // width
    # split a row only where it is long and rows alone do not fill the device
    splits = min(16, triton.cdiv(width, 1024)) if width >= 8192 and rows < 64 else 1
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    part = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    split_kernel[(rows, splits)](x, part, width, triton.cdiv(width, splits), BLOCK=1024)
    join_kernel[(rows,)](part, out, splits, MANY=triton.next_power_of_2(splits))
    return out
