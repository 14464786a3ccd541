"""The row stride of cos serves sin as well: wrong if only one of them is a slice of a wider table.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, table_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    position = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, BLOCK)
    mask = (position < seq)[:, None] & (i < half)[None, :]
    at = (head * seq + position)[:, None] * (2 * half) + i[None, :]
    table = position[:, None] * table_stride + i[None, :]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    c = tl.load(cos_ptr + table, mask=mask, other=0.0).to(tl.float32)
    s = tl.load(sin_ptr + table, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * c - b * s, mask=mask)
    tl.store(out_ptr + at + half, b * c + a * s, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    if cos.stride(-1) != 1 or sin.stride(-1) != 1:
        cos, sin = cos.contiguous(), sin.contiguous()
    batch, heads, seq, width = x.shape
    out = torch.empty_like(x)
    kernel[(batch * heads, triton.cdiv(seq, 16))](
        x, cos, sin, out, seq, width // 2, cos.stride(0), ROWS=16, BLOCK=triton.next_power_of_2(width // 2)
    )
    return out
