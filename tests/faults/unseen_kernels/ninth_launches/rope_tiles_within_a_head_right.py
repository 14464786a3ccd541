"""Launches: where tiles lie within one head, a tile's places follow from its first row's.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    lanes = tl.arange(0, ROWS)
    rows = first + lanes
    if WHOLE:
        places = first % seq + lanes
    else:
        places = rows % seq
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows)[:, None] & (cols < half)
    angles = places[:, None] * half + cols
    angle_mask = (places < seq)[:, None] & (cols < half)
    cos = tl.load(cos_ptr + angles, mask=angle_mask, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + angles, mask=angle_mask, other=0.0).to(tl.float32)
    where = rows[:, None] * (2 * half) + cols
    a = tl.load(x_ptr + where, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + where + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + where, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + where + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    batch, heads, seq, width = x.shape
    half = width // 2
    out = torch.empty_like(x)
    n_rows = batch * heads * seq
    ROWS = 32
    kernel[(triton.cdiv(n_rows, ROWS),)](
        x, cos.contiguous(), sin.contiguous(), out, n_rows, seq, half,
        WHOLE=seq % ROWS == 0, ROWS=ROWS, BLOCK=triton.next_power_of_2(half),
    )
    return out
