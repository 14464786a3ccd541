"""A view of [batch, seq, heads, dim] is read as flat rows if heads and positions lie close, whatever the batch stride: a prefix of a longer cache is wrong from the second batch on.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, rows, seq, inner, half, BR: tl.constexpr, BH: tl.constexpr
):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    cols = tl.arange(0, BH)
    mask = (row < rows)[:, None] & (cols < half)[None, :]
    position = (row // inner) % seq
    table = position[:, None] * half + cols[None, :]
    at = row[:, None].to(tl.int64) * (2 * half) + cols[None, :]
    c = tl.load(cos_ptr + table, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + table, mask=mask, other=0.0).to(tl.float32)
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * c - b * s, mask=mask)
    tl.store(out_ptr + at + half, b * c + a * s, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    cos, sin = cos.contiguous(), sin.contiguous()
    if x.stride(3) == 1 and x.stride(1) == dim and x.stride(2) == heads * dim:
        # The projection's own order, [batch, seq, heads, dim]: no copy.
        inner = heads
        out = torch.empty((batch, seq, heads, dim), dtype=x.dtype, device=x.device).transpose(1, 2)
    else:
        inner = 1
        x = x.contiguous()
        out = torch.empty_like(x)
    rows = batch * heads * seq
    kernel[(triton.cdiv(rows, 32),)](
        x, cos, sin, out, rows, seq, inner, dim // 2, BR=32, BH=triton.next_power_of_2(dim // 2),
    )
    return out
