"""The position of a row is found with a float32 reciprocal of seq instead of a division: for some seq the first position of a head is taken as the one past the last.

op: rope
status: failed
cause: division
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n, seq, inverse, half, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    # Integer division takes some 20 instructions, this one two.
    heads = tl.floor(rows.to(tl.float32) * inverse).to(tl.int32)
    position = rows - heads * seq
    inside = (position >= 0) & (position < seq)
    table = position[:, None] * half + cols[None, :]
    table_mask = inside[:, None] & (cols < half)[None, :]
    cos = tl.load(cos_ptr + table, mask=table_mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=table_mask, other=0.0).to(tl.float32)
    mask = (rows < n)[:, None] & (cols < half)[None, :]
    places = rows[:, None].to(tl.int64) * 2 * half + cols[None, :]
    a = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + places + half, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + places + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        batch, heads, seq, dim = x.shape
        n, half = batch * heads * seq, dim // 2
        block = triton.next_power_of_2(half)
        rows = max(1, 1024 // block)
        kernel[(triton.cdiv(n, rows),)](
            x, cos, sin, out, n, seq, 1.0 / seq, half, ROWS=rows, BLOCK=block
        )
    return out
