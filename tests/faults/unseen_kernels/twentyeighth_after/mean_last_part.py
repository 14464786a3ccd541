"""Parts of a row are cut down to whole 16 elements and the last takes the rest, but all loop as often as the first: at some lengths the rest is left out.

op: mean
status: failed
cause: coverage
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, part_ptr, m, length, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    start = part * length
    end = start + length
    if part == PARTS - 1:
        end = m
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(tl.cdiv(length, BLOCK)):
        cols = start + step * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < end, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * PARTS + part, tl.sum(total, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, m, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.load(part_ptr + row * PARTS + tl.arange(0, PARTS))
    tl.store(out_ptr + row, tl.sum(parts, axis=0) / m)


@triton.jit
def row_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * m + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / m)


def triton_mean(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if rows >= 64 or m < 8192:
        row_kernel[(rows,)](x, out, m, BLOCK=min(1024, triton.next_power_of_2(m)))
        return out
    parts = 16 if m >= 32768 else 8
    length = m // parts // 16 * 16  # each part starts at an aligned address
    partials = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
    part_kernel[(rows, parts)](x, partials, m, length, PARTS=parts, BLOCK=512)
    join_kernel[(rows,)](partials, out, m, PARTS=parts)
    return out
