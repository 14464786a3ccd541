"""A copy of a strided x becomes the output; the second half's program reads the first half after it is turned.

op: rope
status: failed
cause: reused_memory
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    is_second = tl.program_id(1)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + row % seq * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + row % seq * half + cols, mask=mask).to(tl.float32)
    if is_second:
        tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)
    else:
        tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    if x.is_contiguous():
        source, out = x, torch.empty_like(x)
    else:
        source = out = x.contiguous()
    kernel[(batch * heads * seq, 2)](
        source, cos.contiguous(), sin.contiguous(), out, seq, half,
        BLOCK=triton.next_power_of_2(half),
    )
    return out
