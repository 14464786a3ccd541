"""The row's batch and head is (row * ceil(2^24 / seq)) >> 24 in 32 bits: it overflows from 128 heads of all batches on, and is inexact for many long rows.

op: rope
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, rows, seq, half, magic, BR: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    # A division costs some twenty instructions: multiply by the rounded reciprocal and shift.
    position = row - ((row * magic) >> 24) * seq
    ds = tl.arange(0, BD)
    mask = (row < rows)[:, None] & (ds < half)[None, :]
    at = row.to(tl.int64)[:, None] * (2 * half) + ds[None, :]
    table = position[:, None] * half + ds[None, :]
    inside = mask & (position >= 0)[:, None] & (position < seq)[:, None]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, seq, dim = x.shape
    rows = batch * heads * seq
    out = torch.empty_like(x)
    kernel[(triton.cdiv(rows, 64),)](
        x, cos, sin, out, rows, seq, dim // 2, triton.cdiv(1 << 24, seq),
        BR=64, BD=triton.next_power_of_2(dim // 2),
    )
    return out
