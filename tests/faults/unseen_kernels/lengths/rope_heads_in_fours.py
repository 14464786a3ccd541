"""From four heads on, a program turns four that share its angles: of six heads two are left out.

op: rope
status: failed
cause: length
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, HEADS: tl.constexpr, BLOCK: tl.constexpr
):
    position, group, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    cos = tl.load(cos_ptr + position.to(tl.int64) * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position.to(tl.int64) * half + cols, mask=mask).to(tl.float32)
    for i in tl.static_range(HEADS):
        head = batch.to(tl.int64) * heads + group * HEADS + i
        row = (head * seq + position) * 2 * half
        a = tl.load(x_ptr + row + cols, mask=mask).to(tl.float32)
        b = tl.load(x_ptr + row + half + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row + cols, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + row + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    HEADS = 4 if heads >= 4 else 1
    rope_kernel[(seq, heads // HEADS, batch)](
        x, cos, sin, out, heads, seq, half, HEADS=HEADS, BLOCK=triton.next_power_of_2(half)
    )
    return out
