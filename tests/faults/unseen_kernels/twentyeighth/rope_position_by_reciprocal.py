"""A row is divided by seq as a product with 1 / seq in float32: past 2**23 rows the last of a head may be given to the next head, at position -1.

op: rope
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n_rows", "seq", "rest"])
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, rest, half, ROWS: tl.constexpr, BLOCK_HALF: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK_HALF)
    mask = (rows < n_rows)[:, None] & (cols < half)[None, :]
    places = rows[:, None].to(tl.int64) * 2 * half + cols[None, :]
    a = tl.load(x_ptr + places, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + places + half, mask=mask).to(tl.float32)
    # An integer division is some twenty instructions. The half keeps multiples of seq off the edge.
    head = ((rows.to(tl.float32) + 0.5) * rest).to(tl.int32)
    position = rows - head * seq
    angle = position[:, None].to(tl.int64) * half + cols[None, :]
    cos = tl.load(cos_ptr + angle, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=mask).to(tl.float32)
    tl.store(out_ptr + places, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + places + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    if out.numel():
        BLOCK_HALF = triton.next_power_of_2(half)
        ROWS = max(1, 4096 // BLOCK_HALF)
        n_rows = batch * heads * seq
        rope_kernel[(triton.cdiv(n_rows, ROWS),)](
            x, cos, sin, out, n_rows, seq, 1.0 / seq, half, ROWS=ROWS, BLOCK_HALF=BLOCK_HALF
        )
    return out
