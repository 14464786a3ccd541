"""Up to 128 positions in float32, the tables of a tile are made from its first row and the first 16 rows by adding angles: tables that start at another position than 0 come out wrong.

op: rope
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, ADD: tl.constexpr, T: tl.constexpr, BH: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * T
    steps = tl.arange(0, T)
    rows = first + steps
    ds = tl.arange(0, BH)
    wide = (ds < half)[None, :]
    inside = (rows < seq)[:, None] & wide
    if ADD:
        # cos(a + b) and sin(a + b): the 16 rows of steps stay in the cache for all tiles
        near = (steps < seq)[:, None] & wide
        cos_b = tl.load(cos_ptr + steps[:, None] * half + ds[None, :], mask=near, other=0.0)
        sin_b = tl.load(sin_ptr + steps[:, None] * half + ds[None, :], mask=near, other=0.0)
        cos_a = tl.load(cos_ptr + first * half + ds, mask=ds < half, other=0.0)[None, :]
        sin_a = tl.load(sin_ptr + first * half + ds, mask=ds < half, other=0.0)[None, :]
        cos = cos_a * cos_b - sin_a * sin_b
        sin = sin_a * cos_b + cos_a * sin_b
    else:
        cos = tl.load(cos_ptr + rows[:, None] * half + ds[None, :], mask=inside, other=0.0).to(tl.float32)
        sin = tl.load(sin_ptr + rows[:, None] * half + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    at = (head * seq + rows)[:, None] * (2 * half) + ds[None, :]
    a = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=inside)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty_like(x)
    add = x.dtype == torch.float32 and seq <= 128  # the error of the angles grows with the position
    kernel[(batch * heads, triton.cdiv(seq, 16))](
        x, cos, sin, out, seq, half, ADD=add, T=16, BH=triton.next_power_of_2(half),
    )
    return out
