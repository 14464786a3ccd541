"""From 1024 positions on a tile of 64 rows reads one piece of the tables from its first position: a tile that goes on into the next head gets no angles there, unless 64 divides the positions.

op: rope
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < half
    c = tl.load(cos_ptr + (row % seq) * half + at, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + (row % seq) * half + at, mask=mask, other=0.0).to(tl.float32)
    a = tl.load(x_ptr + row * 2 * half + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + at, a * c - b * s, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + at, b * c + a * s, mask=mask)


@triton.jit
def tile_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, rows, seq, half, BM: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BM
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    places = first % seq + tl.arange(0, BM)
    table = (places < seq)[:, None] & (at < half)[None, :]
    c = tl.load(cos_ptr + places[:, None] * half + at[None, :], mask=table, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + places[:, None] * half + at[None, :], mask=table, other=0.0).to(tl.float32)
    lines = first + tl.arange(0, BM)
    mask = (lines < rows)[:, None] & (at < half)[None, :]
    ptrs = lines[:, None] * 2 * half + at[None, :]
    a = tl.load(x_ptr + ptrs, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + ptrs + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + ptrs, a * c - b * s, mask=mask)
    tl.store(out_ptr + ptrs + half, b * c + a * s, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    seq, half = cos.shape
    rows = x.numel() // (2 * half)
    out = torch.empty_like(x)
    block = min(64, triton.next_power_of_2(half))
    if seq >= 1024:
        grid = (triton.cdiv(rows, 64), triton.cdiv(half, block))
        tile_kernel[grid](x, cos, sin, out, rows, seq, half, BM=64, BLOCK=block)
    else:
        row_kernel[(rows, triton.cdiv(half, block))](x, cos, sin, out, seq, half, BLOCK=block)
    return out
