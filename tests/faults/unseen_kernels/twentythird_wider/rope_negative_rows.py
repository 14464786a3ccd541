"""Right: rows are numbered from the end by negative numbers; a remainder in Triton has the sign of the number, and seq is added to those below zero.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, rows, heads, seq, half, xb, xh, xs, xd,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    # The last rows first: -1, -2, ... The row of batch, head and position is rows + number.
    number = -1 - (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))
    remainder = number % seq  # 0 down to 1 - seq, as in C
    position = tl.where(remainder < 0, remainder + seq, remainder)
    row = rows + number
    heads_before = (row - position) // seq  # exact, row >= position where row >= 0
    batch, head = heads_before // heads, heads_before % heads
    i = tl.arange(0, BLOCK)
    inside = (row[:, None] >= 0) & (i[None] < half)
    x_ptrs = x_ptr + (batch * xb + head * xh + position * xs)[:, None] + i[None] * xd
    a = tl.load(x_ptrs, mask=inside).to(tl.float32)
    b = tl.load(x_ptrs + tl.cast(half, tl.int64) * xd, mask=inside).to(tl.float32)
    angle = position[:, None] * half + i[None]
    cos = tl.load(cos_ptr + angle, mask=inside).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=inside).to(tl.float32)
    place = row[:, None] * (2 * half) + i[None]
    tl.store(out_ptr + place, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + place + half, b * cos + a * sin, mask=inside)


def triton_rope(x, cos, sin):
    cos, sin = cos.contiguous(), sin.contiguous()
    batch, heads, seq, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = batch * heads * seq
    block = triton.next_power_of_2(width // 2)
    per_program = max(1, 1024 // block)
    kernel[(triton.cdiv(rows, per_program),)](
        x, cos, sin, out, rows, heads, seq, width // 2, *x.stride(), ROWS=per_program, BLOCK=block
    )
    return out
