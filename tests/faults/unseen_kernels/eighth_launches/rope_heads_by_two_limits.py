"""The grid counts groups of 32 heads; with half over 64 a program takes only 16 or fewer of them.

op: rope
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    position = tl.program_id(0)
    batch = tl.program_id(1).to(tl.int64)
    head = tl.program_id(2) * HEADS + tl.arange(0, HEADS)
    cols = tl.arange(0, BLOCK)
    cos = tl.load(cos_ptr + position * half + cols, mask=cols < half).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + position * half + cols, mask=cols < half).to(tl.float32)[None, :]
    mask = (head < heads)[:, None] & (cols < half)[None, :]
    places = ((batch * heads + head[:, None]) * seq + position) * 2 * half + cols[None, :]
    a = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + places + half, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + places + half, b * cos + a * sin, mask=mask)


MOST_HEADS = 32
ELEMENTS = 2048


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    BLOCK = triton.next_power_of_2(half)
    HEADS = min(triton.next_power_of_2(heads), MOST_HEADS, max(1, ELEMENTS // BLOCK))
    grid = seq, batch, triton.cdiv(heads, MOST_HEADS)
    kernel[grid](x, cos, sin, out, heads, seq, half, HEADS=HEADS, BLOCK=BLOCK)
    return out
