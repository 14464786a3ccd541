"""Short heads: sixteen rows a program, each with its own position.

op: rope
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel_rows(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    positions = rows % seq
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < half)[None, :]
    places = rows[:, None] * 2 * half + cols[None, :]
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
    n_rows, ROWS = batch * heads * seq, 1 if half >= 32 else 16
    kernel_rows[(triton.cdiv(n_rows, ROWS),)](
        x, cos, sin, out, n_rows, seq, half, ROWS=ROWS, BLOCK=triton.next_power_of_2(half)
    )
    return out
