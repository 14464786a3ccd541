"""A program turns four heads with one load of the angles, all strides of x are its own, and a last group of fewer heads is masked.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, groups, batch_stride, head_stride, row_stride, col_stride, half_stride,
    GROUP: tl.constexpr, BS: tl.constexpr, BH: tl.constexpr,
):
    pid = tl.program_id(0)
    batch = (pid // groups).to(tl.int64)
    first = pid % groups * GROUP
    rows = tl.program_id(1) * BS + tl.arange(0, BS)
    cols = tl.arange(0, BH)
    inside = (rows < seq)[:, None] & (cols < half)[None, :]
    table = rows[:, None] * half + cols[None, :]
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    for i in tl.static_range(GROUP):
        head = (first + i).to(tl.int64)
        mask = inside & (head < heads)
        x_at = batch * batch_stride + head * head_stride
        x_at += rows[:, None].to(tl.int64) * row_stride + cols[None, :].to(tl.int64) * col_stride
        a = tl.load(x_ptr + x_at, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(x_ptr + x_at + half_stride, mask=mask, other=0.0).to(tl.float32)
        at = ((batch * heads + head) * seq + rows[:, None]) * 2 * half + cols[None, :]
        tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    groups = triton.cdiv(heads, 4)
    out = torch.empty((batch, heads, seq, dim), dtype=x.dtype, device=x.device)
    kernel[(batch * groups, triton.cdiv(seq, 32))](
        x, cos.contiguous(), sin.contiguous(), out, heads, seq, half, groups, *x.stride(), half * x.stride(3),
        GROUP=4, BS=32, BH=triton.next_power_of_2(half),
    )
    return out
