"""Few rows of 8192 or more are split into chunks of whole blocks, and the means of the chunks are averaged as if all chunks were equally long.

op: mean
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / m)


@triton.jit
def chunk_kernel(x_ptr, part_ptr, m, chunk, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * chunk
    last = tl.minimum(first + chunk, m)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(first, last, BLOCK):
        at = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * m + at, mask=at < last, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * chunks + tl.program_id(1), tl.sum(acc, axis=0) / (last - first))


@triton.jit
def join_kernel(part_ptr, out_ptr, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    part = tl.load(part_ptr + row * chunks + at, mask=at < chunks, other=0.0)
    tl.store(out_ptr + row, tl.sum(part, axis=0) / chunks)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if m >= 8192 and rows <= 16:
        chunk = triton.cdiv(triton.cdiv(m, 8), 1024) * 1024
        chunks = triton.cdiv(m, chunk)
        parts = torch.empty((rows, chunks), dtype=torch.float32, device=x.device)
        chunk_kernel[(rows, chunks)](x, parts, m, chunk, chunks, BLOCK=1024)
        join_kernel[(rows,)](parts, out, chunks, BLOCK=8)
    else:
        rows_kernel[(rows,)](x, out, m, BLOCK=1024)
    return out
