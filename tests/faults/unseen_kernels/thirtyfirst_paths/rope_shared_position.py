"""With far more heads than positions, a program loads the cosines of one position, but its rows may reach into the next one.

op: rope
status: failed
cause: tiles
"""

import torch
import triton
import triton.language as tl

MANY_HEADS = 256  # for each position: a step of decoding, or of a few drafted tokens
ROWS = 64


@triton.jit
def turn(x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half,
         N: tl.constexpr, WIDTH: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * N + tl.arange(0, N)
    cols = tl.arange(0, WIDTH)
    mask = (rows < n_rows)[:, None] & (cols < half)[None, :]
    angles = (rows % seq)[:, None] * half + cols[None, :]
    cos = tl.load(cos_ptr + angles, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + angles, mask=mask, other=0.0).to(tl.float32)
    at = rows.to(tl.int64)[:, None] * (2 * half) + cols[None, :]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


@triton.jit
def turn_by_position(x_ptr, cos_ptr, sin_ptr, out_ptr, n_heads, seq, half,
                     N: tl.constexpr, WIDTH: tl.constexpr):  # fmt: skip
    # Positions first, heads of all batches next: cosines and sines are loaded once for N heads.
    first = tl.program_id(0) * N
    position = first // n_heads
    items = first + tl.arange(0, N)
    cols = tl.arange(0, WIDTH)
    cos = tl.load(cos_ptr + position * half + cols, mask=cols < half, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * half + cols, mask=cols < half, other=0.0).to(tl.float32)
    rows = (items % n_heads) * seq + items // n_heads
    mask = (items < n_heads * seq)[:, None] & (cols < half)[None, :]
    at = rows.to(tl.int64)[:, None] * (2 * half) + cols[None, :]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos[None, :] - b * sin[None, :], mask=mask)
    tl.store(out_ptr + at + half, b * cos[None, :] + a * sin[None, :], mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, seq, full = x.shape
    half = full // 2
    out = torch.empty_like(x)
    width = triton.next_power_of_2(half)
    n_heads = batch * heads
    if n_heads // seq >= MANY_HEADS:
        grid = (triton.cdiv(n_heads * seq, ROWS),)
        turn_by_position[grid](x, cos, sin, out, n_heads, seq, half, N=ROWS, WIDTH=width)
    else:
        n = max(1, 2048 // width)
        grid = (triton.cdiv(n_heads * seq, n),)
        turn[grid](x, cos, sin, out, n_heads * seq, seq, half, N=n, WIDTH=width)
    return out
