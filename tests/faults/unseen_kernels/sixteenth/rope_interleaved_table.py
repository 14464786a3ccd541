"""Tables with a step of two are read as pairs of cosine and sine side by side: a slice of every second column of a table that repeats each angle is no such pair.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, pitch, step,
    PAIRED: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    base = row.to(tl.int64) * 2 * half
    at = tl.arange(0, BLOCK)
    inside = at < half
    a = tl.load(x_ptr + base + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + base + half + at, mask=inside, other=0.0).to(tl.float32)
    place = (row % seq) * pitch + at * step
    cos = tl.load(cos_ptr + place, mask=inside, other=0.0).to(tl.float32)
    if PAIRED:
        # cos and sin of an angle lie side by side: one line of the cache serves both
        sin = tl.load(cos_ptr + place + 1, mask=inside, other=0.0).to(tl.float32)
    else:
        sin = tl.load(sin_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + base + at, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + base + half + at, b * cos + a * sin, mask=inside)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    seq, half = cos.shape
    # view_as_real(polar(...)) gives tables of [seq, half, 2]
    paired = half > 1 and cos.stride(1) == 2 and cos.stride() == sin.stride()
    if not paired:
        cos, sin = cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    kernel[(x.numel() // (2 * half),)](
        x, cos, sin, out, seq, half, cos.stride(0), cos.stride(1),
        PAIRED=paired, BLOCK=triton.next_power_of_2(half),
    )
    return out
