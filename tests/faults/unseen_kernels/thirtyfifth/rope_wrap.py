"""A tile of 16 rows takes one modulo for its first position and then subtracts seq once where it passes
the end: with seq below 16 and several heads a tile wraps more than once (decoding, seq = 1).

op: rope
status: failed
cause: index arithmetic
"""

import torch
import triton
import triton.language as tl

@triton.jit
def _k(x, cos, sin, out, n, seq, half, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    pos = first % seq + tl.arange(0, ROWS)
    pos = tl.where(pos >= seq, pos - seq, pos)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n)[:, None] & (cols < half)[None, :]
    at = rows.to(tl.int64)[:, None] * (2 * half) + cols[None, :]
    angle = pos.to(tl.int64)[:, None] * half + cols[None, :]
    valid_rows = mask & (pos < seq)[:, None]
    a = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x + at + half, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(cos + angle, mask=valid_rows, other=1.0).to(tl.float32)
    s = tl.load(sin + angle, mask=valid_rows, other=0.0).to(tl.float32)
    tl.store(out + at, (a * c - b * s).to(out.dtype.element_ty), mask=mask)
    tl.store(out + at + half, (b * c + a * s).to(out.dtype.element_ty), mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        seq, half = cos.shape
        n = x.numel() // (2 * half)
        _k[(triton.cdiv(n, 16),)](x, cos, sin, out, n, seq, half, ROWS=16, BLOCK=triton.next_power_of_2(half))
    return out
