"""Cos and sin may be a slice of a longer table; the sine is read by the cosine's row length.

op: rope
status: failed
cause: wrong_stride
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, xb, xh, xs, xd, cs, cd, sd,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    batch, head, position = row // seq // heads, row // seq % heads, row % seq
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    base = x_ptr + batch * xb + head * xh + position * xs
    a = tl.load(base + cols * xd, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(base + (cols + half) * xd, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + position * cs + cols * cd, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * cs + cols * sd, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, heads, seq, dim // 2, *x.stride(), *cos.stride(), sin.stride(1),
        BLOCK=triton.next_power_of_2(dim // 2),
    )
    return out
