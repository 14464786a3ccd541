"""The first of eight rows has its position; the others count on, past the end of a head.

op: rope
status: failed
cause: wrong_stride
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    rows = first + tl.arange(0, ROWS)[:, None]
    position = tl.minimum(first % seq + tl.arange(0, ROWS)[:, None], seq - 1)
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < half)
    a = tl.load(x_ptr + rows * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + rows * 2 * half + half + cols, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + position * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position * half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + rows * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    n_rows, half = batch * heads * seq, dim // 2
    kernel[(triton.cdiv(n_rows, 8),)](
        x, cos, sin, out, n_rows, seq, half, ROWS=8, BLOCK=triton.next_power_of_2(half)
    )
    return out
