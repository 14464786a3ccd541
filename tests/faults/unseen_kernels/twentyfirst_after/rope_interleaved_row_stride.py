"""Heads that lie side by side are read in place, a row being all heads of x long: wrong for the part of a wider projection.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, batch_stride, head_stride, row_stride,
    BS: tl.constexpr, BH: tl.constexpr,
):
    pid = tl.program_id(0)
    batch = (pid // heads).to(tl.int64)
    head = (pid % heads).to(tl.int64)
    rows = tl.program_id(1) * BS + tl.arange(0, BS)
    cols = tl.arange(0, BH)
    inside = (rows < seq)[:, None] & (cols < half)[None, :]
    x_at = batch * batch_stride + head * head_stride + rows[:, None].to(tl.int64) * row_stride + cols[None, :]
    table = rows[:, None] * half + cols[None, :]
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    a = tl.load(x_ptr + x_at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + x_at + half, mask=inside, other=0.0).to(tl.float32)
    at = (pid.to(tl.int64) * seq + rows[:, None]) * 2 * half + cols[None, :]
    tl.store(out_ptr + at, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=inside)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    if x.stride(3) == 1 and x.stride(1) == dim:  # [batch, seq, heads, dim], transposed
        head_stride, row_stride = dim, heads * dim
        batch_stride = seq * row_stride
    else:
        x = x.contiguous()
        batch_stride, head_stride, row_stride = heads * seq * dim, seq * dim, dim
    out = torch.empty((batch, heads, seq, dim), dtype=x.dtype, device=x.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        x, cos.contiguous(), sin.contiguous(), out, heads, seq, half, batch_stride, head_stride, row_stride,
        BS=32, BH=triton.next_power_of_2(half),
    )
    return out
