"""A position whose sines are all 0 is copied, its cosines taken for 1: wrong for tables that are scaled.

op: rope
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = row % seq
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    base = row.to(tl.int64) * 2 * half
    a = tl.load(x_ptr + base + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + base + half + cols, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + place * half + cols, mask=mask, other=0.0).to(tl.float32)
    if tl.max(tl.abs(sin), axis=0) == 0.0:
        tl.store(out_ptr + base + cols, a, mask=mask)
        tl.store(out_ptr + base + half + cols, b, mask=mask)
    else:
        cos = tl.load(cos_ptr + place * half + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + base + cols, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + base + half + cols, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    seq, half = cos.shape
    out = torch.empty_like(x)
    kernel[(x.numel() // (2 * half),)](x, cos, sin, out, seq, half, BLOCK=triton.next_power_of_2(half))
    return out
