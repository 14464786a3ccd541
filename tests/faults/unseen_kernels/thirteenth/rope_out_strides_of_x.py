"""The output is made with the strides of x, so that one set serves both: where x is expanded over the positions, these share one row of memory.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, stride_b, stride_h, stride_s, stride_d,
    BS: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0)
    base = (head // heads).to(tl.int64) * stride_b + (head % heads).to(tl.int64) * stride_h
    rows = tl.program_id(1) * BS + tl.arange(0, BS)
    ds = tl.arange(0, BD)
    mask = (rows < seq)[:, None] & (ds < half)[None, :]
    at = base + rows[:, None] * stride_s + ds[None, :] * stride_d
    table = rows[:, None] * half + ds[None, :]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half * stride_d, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + table, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half * stride_d, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    cos, sin = cos.contiguous(), sin.contiguous()
    batch, heads, seq, dim = x.shape
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        x, cos, sin, out, heads, seq, dim // 2, *x.stride(), BS=32, BD=triton.next_power_of_2(dim // 2)
    )
    return out
