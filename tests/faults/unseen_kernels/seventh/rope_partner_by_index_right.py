"""One pass over whole heads: each element finds its partner half a head away, by (i + half) % width, and only the sign of sin differs.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, c0, c1, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    mask = i < 2 * half
    angle = i % half
    cos = tl.load(cos_ptr + row % seq * c0 + angle * c1, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + row % seq * s0 + angle * s1, mask=mask).to(tl.float32)
    x = tl.load(x_ptr + row * 2 * half + i, mask=mask).to(tl.float32)
    partner = tl.load(x_ptr + row * 2 * half + (i + half) % (2 * half), mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + i, x * cos + tl.where(i < half, -partner, partner) * sin, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    seq, half = cos.shape
    kernel[(x.numel() // (2 * half),)](
        x, cos, sin, out, seq, half, *cos.stride(), *sin.stride(), BLOCK=triton.next_power_of_2(2 * half)
    )
    return out
