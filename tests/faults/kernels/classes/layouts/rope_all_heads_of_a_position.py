"""A program has one position of a batch and walks over its heads; every stride is used.

op: rope
status: passed
drawn: no
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, xb, xh, xs, xd, cs, cd, ss, sd,
    BLOCK: tl.constexpr,
):
    position, batch = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    cos = tl.load(cos_ptr + position * cs + cols * cd, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position * ss + cols * sd, mask=mask).to(tl.float32)
    for head in range(heads):
        source = x_ptr + batch * xb + head * xh + position * xs
        a = tl.load(source + cols * xd, mask=mask).to(tl.float32)
        b = tl.load(source + (half + cols) * xd, mask=mask).to(tl.float32)
        target = out_ptr + ((batch * heads + head) * seq + position) * 2 * half
        tl.store(target + cols, a * cos - b * sin, mask=mask)
        tl.store(target + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(seq, batch)](
        x, cos, sin, out, heads, seq, dim // 2, *x.stride(), *cos.stride(), *sin.stride(),
        BLOCK=triton.next_power_of_2(dim // 2),
    )
    return out
