"""A program turns four heads in a row, by the strides of the first: past the last head of a batch they reach into other memory unless x is contiguous.

op: rope
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, every, heads, seq, half, sb, sh, ss, sd,
    HEADS: tl.constexpr, BS: tl.constexpr, BH: tl.constexpr,
):
    # cos and sin are read once for four heads.
    first = tl.program_id(0) * HEADS
    position = tl.program_id(1) * BS + tl.arange(0, BS)
    i = tl.arange(0, BH)
    inside = (position < seq)[:, None] & (i < half)[None, :]
    table = position[:, None] * half + i[None, :]
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    x_first = x_ptr + (first // heads).to(tl.int64) * sb + (first % heads) * sh
    for j in tl.static_range(HEADS):
        mask = inside & (first + j < every)
        at = x_first + j * sh + position[:, None] * ss + i[None, :] * sd
        a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(at + half * sd, mask=mask, other=0.0).to(tl.float32)
        to = out_ptr + ((first + j).to(tl.int64) * seq + position)[:, None] * 2 * half + i[None, :]
        tl.store(to, a * cos - b * sin, mask=mask)
        tl.store(to + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    cos, sin = cos.contiguous(), sin.contiguous()
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(batch * heads, 4), triton.cdiv(seq, 32))](
        x, cos, sin, out, batch * heads, heads, seq, dim // 2, *x.stride(),
        HEADS=4, BS=32, BH=triton.next_power_of_2(dim // 2),
    )
    return out
