"""Neighbouring elements (2i, 2i + 1) are turned as a pair, as in GPT-J, instead of (i, i + half).

It shows at shape (1, 1, 7, 13), float32 (right at half = 1, and at position 0).

op: rope
status: failed
cause: pairing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    a = tl.load(x_ptr + row * 2 * half + 2 * cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + 2 * cols + 1, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + position * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position * half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + 2 * cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + 2 * cols + 1, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, seq, half, BLOCK=triton.next_power_of_2(half)
    )
    return out
