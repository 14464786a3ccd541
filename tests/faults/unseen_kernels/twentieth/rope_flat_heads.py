"""Batches and heads are one index with the stride of the heads: wrong for more than one batch when x is a view of [batch, seq, heads, dim].

op: rope
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, stride_h, stride_s, BS: tl.constexpr, BH: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BS + tl.arange(0, BS)
    ds = tl.arange(0, BH)
    mask = (at < seq)[:, None] & (ds < half)[None, :]
    turn = at[:, None] * half + ds[None, :]
    cos = tl.load(cos_ptr + turn, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + turn, mask=mask, other=0.0).to(tl.float32)
    source = x_ptr + head * stride_h + at[:, None] * stride_s + ds[None, :]
    a = tl.load(source, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(source + half, mask=mask, other=0.0).to(tl.float32)
    goal = out_ptr + (head * seq + at[:, None]) * (2 * half) + ds[None, :]
    tl.store(goal, a * cos - b * sin, mask=mask)
    tl.store(goal + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    cos, sin = cos.contiguous(), sin.contiguous()
    if x.stride(-1) != 1 or 0 in x.stride():
        x = x.contiguous()
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(dim // 2)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        x, cos, sin, out, seq, dim // 2, x.stride(1), x.stride(2), BS=32, BH=block,
    )
    return out
