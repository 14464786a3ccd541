"""A row of more than 8192 is the mean of the means of its chunks, weighted with their lengths.

op: mean
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def short(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / cols)


@triton.jit
def chunk_means(x_ptr, part_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK
    col = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + col, mask=col < cols, other=0.0).to(tl.float32)
    count = tl.minimum(cols - first, BLOCK)
    tl.store(part_ptr + row * tl.num_programs(1) + tl.program_id(1), tl.sum(x, axis=0) / count)


@triton.jit
def mean_of_means(part_ptr, out_ptr, cols, chunks, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + row * chunks + at, mask=at < chunks, other=0.0)
    share = tl.minimum(tl.maximum(cols - at * CHUNK, 0), CHUNK).to(tl.float32) / cols
    tl.store(out_ptr + row, tl.sum(part * share, axis=0))


def triton_mean(x):
    x = x.contiguous()
    cols = x.shape[-1]
    rows = x.numel() // cols
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if cols <= 8192:
        short[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
    chunks = triton.cdiv(cols, 4096)
    part = torch.empty(rows, chunks, dtype=torch.float32, device=x.device)
    chunk_means[(rows, chunks)](x, part, cols, BLOCK=4096)
    mean_of_means[(rows,)](part, out, cols, chunks, CHUNK=4096, BLOCK=triton.next_power_of_2(chunks))
    return out
