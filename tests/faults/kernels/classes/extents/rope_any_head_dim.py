"""Heads of any dimension, in blocks of 32 pairs.

op: rope
status: passed
drawn: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq
    for start in range(0, half, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < half
        a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
        b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
        cos = tl.load(cos_ptr + position * half + cols, mask=mask).to(tl.float32)
        sin = tl.load(sin_ptr + position * half + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    kernel[(batch * heads * seq,)](x, cos, sin, out, seq, dim // 2, BLOCK=32)
    return out
