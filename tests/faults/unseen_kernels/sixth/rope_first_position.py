"""The first position is not turned, as if it were always position 0; a chunk that starts later in the text has other angles there.

op: rope
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, cr, cc, sr, sc, BS: tl.constexpr, BH: tl.constexpr
):
    head = tl.program_id(0).to(tl.int64)
    positions = tl.program_id(1) * BS + tl.arange(0, BS)
    cols = tl.arange(0, BH)
    mask = (positions < seq)[:, None] & (cols < half)[None, :]
    # position 0 has angle 0: cos 1, sin 0, no need to load them
    turned = mask & (positions > 0)[:, None]
    cos = tl.load(cos_ptr + positions[:, None] * cr + cols[None, :] * cc, mask=turned, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + positions[:, None] * sr + cols[None, :] * sc, mask=turned, other=0.0).to(tl.float32)
    at = head * seq * 2 * half + positions[:, None] * 2 * half + cols[None, :]
    a = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    batch, heads, seq, full = x.shape
    half = full // 2
    out = torch.empty_like(x)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        x, cos, sin, out, seq, half, *cos.stride(), *sin.stride(),
        BS=32, BH=triton.next_power_of_2(half),
    )
    return out
