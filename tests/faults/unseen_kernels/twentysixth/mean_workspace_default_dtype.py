"""The partial sums of split rows lie in a workspace of torch's default dtype, which a user may set to bfloat16.

op: mean
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, m, chunk, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    end = tl.minimum((part + 1) * chunk, m)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(part * chunk, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * tl.num_programs(1) + part, tl.sum(total, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, parts, m, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, PARTS)
    total = tl.sum(tl.load(part_ptr + row * parts + at, mask=at < parts, other=0.0), axis=0)
    tl.store(out_ptr + row, (total / m).to(out_ptr.dtype.element_ty))


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, (tl.sum(total, axis=0) / m).to(out_ptr.dtype.element_ty))


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if rows >= 128 or m < 2048:  # enough programs, or too little to split
        row_kernel[(rows,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
        return out
    parts = min(64, triton.cdiv(m, 1024))
    chunk = triton.cdiv(m, parts)
    partial = torch.empty((rows, parts), device=x.device)
    part_kernel[(rows, parts)](x, partial, m, chunk, BLOCK=512)
    join_kernel[(rows,)](partial, out, parts, m, PARTS=triton.next_power_of_2(parts))
    return out
