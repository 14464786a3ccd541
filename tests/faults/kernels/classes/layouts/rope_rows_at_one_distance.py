"""All rows of all heads are taken to lie one sequence stride apart.

op: rope
status: failed
cause: wrong_stride
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def turn(a, b, cos, sin):
    return a * cos - b * sin, b * cos + a * sin


@triton.jit
def kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    n_rows,
    seq,
    half,
    x_row,
    x_col,
    cos_row,
    cos_col,
    sin_row,
    sin_col,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows) & (cols < half)
    first = x_ptr + rows.to(tl.int64) * x_row + cols * x_col
    a = tl.load(first, mask=inside).to(tl.float32)
    b = tl.load(first + half * x_col, mask=inside).to(tl.float32)
    position = rows % seq
    cos = tl.load(cos_ptr + position * cos_row + cols * cos_col, mask=inside).to(tl.float32)
    sin = tl.load(sin_ptr + position * sin_row + cols * sin_col, mask=inside).to(tl.float32)
    left, right = turn(a, b, cos, sin)
    to = out_ptr + rows.to(tl.int64) * 2 * half + cols
    tl.store(to, left, mask=inside)
    tl.store(to + half, right, mask=inside)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, half = batch * heads * seq, dim // 2
    ROWS = 16
    kernel[(triton.cdiv(n_rows, ROWS),)](
        x,
        cos,
        sin,
        out,
        n_rows,
        seq,
        half,
        x.stride(2),
        x.stride(3),
        *cos.stride(),
        *sin.stride(),
        ROWS=ROWS,
        BLOCK=triton.next_power_of_2(half),
    )
    return out
