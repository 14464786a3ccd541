"""The turn is done with three products, Gauss's trick, from cos * (a + b): where one half is far larger than the other, the small one is lost.

op: rope
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, n_heads, seq, half, BLOCK: tl.constexpr):
    place = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < half
    cos = tl.load(cos_ptr + place * half + cols, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + place * half + cols, mask=inside, other=0.0).to(tl.float32)
    plus, minus = cos + sin, sin - cos  # once for all heads of the position
    for head in range(tl.program_id(1), n_heads, tl.num_programs(1)):
        at = (head * seq + place).to(tl.int64) * (2 * half) + cols
        a = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(x_ptr + at + half, mask=inside, other=0.0).to(tl.float32)
        shared = cos * (a + b)
        tl.store(out_ptr + at, shared - b * plus, mask=inside)
        tl.store(out_ptr + at + half, shared + a * minus, mask=inside)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, width = x.shape
    kernel[(seq, min(4, batch * heads))](
        x, cos, sin, out, batch * heads, seq, width // 2, BLOCK=triton.next_power_of_2(width // 2)
    )
    return out
