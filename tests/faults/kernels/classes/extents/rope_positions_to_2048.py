"""A program walks a head in at most 64 blocks of 32 positions; later ones are left out.

op: rope
status: failed
cause: truncated_extent
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    for block in range(0, 64):
        positions = block * ROWS + tl.arange(0, ROWS)
        mask = (positions < seq)[:, None] & (cols < half)[None, :]
        places = (head * seq + positions[:, None]) * 2 * half + cols[None, :]
        table = positions[:, None] * half + cols[None, :]
        a = tl.load(x_ptr + places, mask=mask).to(tl.float32)
        b = tl.load(x_ptr + places + half, mask=mask).to(tl.float32)
        cos = tl.load(cos_ptr + table, mask=mask).to(tl.float32)
        sin = tl.load(sin_ptr + table, mask=mask).to(tl.float32)
        tl.store(out_ptr + places, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + places + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    kernel[(batch * heads,)](
        x, cos, sin, out, seq, half, ROWS=32, BLOCK=triton.next_power_of_2(half)
    )
    return out
