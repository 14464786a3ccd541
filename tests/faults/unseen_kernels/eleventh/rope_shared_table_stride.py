"""sin is read at cos's strides: wrong where the two tables lie in memory in two ways.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, table_row, table_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    at = position * table_row + cols * table_col
    cos = tl.load(cos_ptr + at, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + at, mask=mask).to(tl.float32)
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, seq, half, *cos.stride(), BLOCK=triton.next_power_of_2(half)
    )
    return out
