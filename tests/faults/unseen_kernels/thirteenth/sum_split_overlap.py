"""Rows over 8192 are split in eight, but a part's last block is cut at the row's end only: it reads into the next part where a part is no multiple of the block.

op: sum
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(x_ptr, parts_ptr, m, chunk, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first = part * chunk
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, chunk, BLOCK):
        cols = first + start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * SPLITS + part, tl.sum(acc, axis=0))


@triton.jit
def join_kernel(parts_ptr, out_ptr, SPLITS: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.load(parts_ptr + row * SPLITS + tl.arange(0, SPLITS))
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    splits = 8 if m > 8192 else 1
    parts = torch.empty((rows, splits), dtype=torch.float32, device=x.device)
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    parts_kernel[(rows, splits)](x, parts, m, triton.cdiv(m, splits), SPLITS=splits, BLOCK=1024)
    join_kernel[(rows,)](parts, out, SPLITS=splits)
    return out
