"""The index type is chosen by the number of elements of x, not by what its strides span: in a view of a large cache it wraps.

op: rope
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, x_b, x_h, x_s, x_d, cos_s, cos_d, sin_s, sin_d,
    WIDE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    head = tl.program_id(0)
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    ds = tl.arange(0, BLOCK)
    if WIDE:  # 64-bit arithmetic takes registers, and is seldom needed
        head = head.to(tl.int64)
        rows = rows.to(tl.int64)
        ds = ds.to(tl.int64)
    b, h = head // heads, head % heads
    inside = (rows < seq)[:, None] & (ds < half)[None, :]
    cos = tl.load(cos_ptr + rows[:, None] * cos_s + ds[None, :] * cos_d, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + rows[:, None] * sin_s + ds[None, :] * sin_d, mask=inside, other=0.0).to(tl.float32)
    at = b * x_b + h * x_h + rows[:, None] * x_s + ds[None, :] * x_d
    left = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(x_ptr + at + half * x_d, mask=inside, other=0.0).to(tl.float32)
    to = (head * seq + rows[:, None]) * (2 * half) + ds[None, :]
    tl.store(out_ptr + to, left * cos - right * sin, mask=inside)
    tl.store(out_ptr + to + half, right * cos + left * sin, mask=inside)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        BLOCK = triton.next_power_of_2(half)
        ROWS = max(1, min(2048 // BLOCK, triton.next_power_of_2(seq)))
        wide = max(x.numel(), cos.numel(), sin.numel()) + ROWS * BLOCK >= 2**31
        kernel[(batch * heads, triton.cdiv(seq, ROWS))](
            x, cos, sin, out, heads, seq, half, *x.stride(), *cos.stride(), *sin.stride(),
            WIDE=wide, ROWS=ROWS, BLOCK=BLOCK,
        )
    return out
