"""Nothing wrong: a program takes all batches and heads of a position; x, cos and sin are read by their strides, four rows at a time.

op: rope
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, batch, heads, seq, half, x_b, x_h, x_s, x_d, cos_s, cos_d,
    sin_s, sin_d, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    cos = tl.load(cos_ptr + place * cos_s + cols * cos_d, mask=cols < half, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + place * sin_s + cols * sin_d, mask=cols < half, other=0.0).to(tl.float32)
    for first in range(0, batch * heads, ROWS):
        bh = (first + tl.arange(0, ROWS)).to(tl.int64)
        inside = (bh < batch * heads)[:, None] & (cols < half)[None, :]
        row = x_ptr + (bh // heads * x_b + bh % heads * x_h)[:, None] + place * x_s
        a = tl.load(row + cols[None, :] * x_d, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(row + (cols + half)[None, :] * x_d, mask=inside, other=0.0).to(tl.float32)
        at = (bh * seq + place)[:, None] * (2 * half) + cols[None, :]
        tl.store(out_ptr + at, a * cos[None, :] - b * sin[None, :], mask=inside)
        tl.store(out_ptr + at + half, b * cos[None, :] + a * sin[None, :], mask=inside)


def triton_rope(x, cos, sin):
    batch, heads, seq, width = x.shape
    half = width // 2
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = min(64, triton.next_power_of_2(half))
    kernel[(seq, triton.cdiv(half, block))](
        x, cos, sin, out, batch, heads, seq, half, *x.stride(), *cos.stride(), *sin.stride(),
        ROWS=4, BLOCK=block,
    )
    return out
