"""Batch and head are counted as one number, which is multiplied by the stride of the heads alone.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, x_head, x_seq, x_dim, cr, cc, sr, sc,
    ROWS: tl.constexpr, HALF: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, HALF)[None, :]
    mask = (rows < seq) & (cols < half)
    at = x_ptr + head * x_head + rows * x_seq + cols * x_dim
    a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(at + half * x_dim, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + rows * cr + cols * cc, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + rows * sr + cols * sc, mask=mask, other=0.0).to(tl.float32)
    to = out_ptr + head * seq * 2 * half + rows * 2 * half + cols
    tl.store(to, a * cos - b * sin, mask=mask)
    tl.store(to + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty((batch, heads, seq, dim), dtype=x.dtype, device=x.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        x, cos, sin, out, seq, half, x.stride(1), x.stride(2), x.stride(3),
        *cos.stride(), *sin.stride(), ROWS=32, HALF=triton.next_power_of_2(half),
    )
    return out
