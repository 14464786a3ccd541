"""The output has the memory format of x, and is stored as if it were contiguous.

op: rope
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half,
    xb, xh, xs, xd, cs, cd, ss, sd, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq
    head = row // seq % heads
    batch = row // seq // heads
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    base = x_ptr + batch * xb + head * xh + position * xs
    a = tl.load(base + cols * xd, mask=mask).to(tl.float32)
    b = tl.load(base + (cols + half) * xd, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + position * cs + cols * cd, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position * ss + cols * sd, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty_like(x)
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, heads, seq, half,
        x.stride(0), x.stride(1), x.stride(2), x.stride(3),
        cos.stride(0), cos.stride(1), sin.stride(0), sin.stride(1),
        BLOCK=triton.next_power_of_2(half),
    )
    return out
