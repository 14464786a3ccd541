"""x with the heads of a token side by side is read in place, its batches taken as seq tokens apart: wrong for a view of the first tokens of a longer buffer.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, token, sxb, sxh, sxs, scs, scd, sns, snd,
           BY_TOKEN: tl.constexpr, HALF: tl.constexpr, BH: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BH)
    mask = at < HALF
    if BY_TOKEN:
        # One token after the other, all its heads in one piece.
        h = pid % heads
        row = pid // heads
        b, s = row // seq, row % seq
        x = x_ptr + row * token + h * (2 * HALF)
    else:
        s = pid % seq
        b, h = pid // seq // heads, pid // seq % heads
        x = x_ptr + b * sxb + h * sxh + s * sxs
    low = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    high = tl.load(x + HALF + at, mask=mask, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + s * scs + at * scd, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + s * sns + at * snd, mask=mask, other=0.0).to(tl.float32)
    out = out_ptr + ((b * heads + h) * seq + s) * (2 * HALF)
    tl.store(out + at, low * cos - high * sin, mask=mask)
    tl.store(out + HALF + at, high * cos + low * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, d = x.shape
    if x.stride(3) != 1:
        x = x.contiguous()
    out = torch.empty((batch, heads, seq, d), dtype=x.dtype, device=x.device)
    # [batch, seq, heads, d] in memory, or q of a fused [batch, seq, 3 * heads, d].
    by_token = heads > 1 and x.stride(1) == d and x.stride(2) >= heads * d
    half = d // 2
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, heads, seq, x.stride(2), x.stride(0), x.stride(1), x.stride(2), *cos.stride(), *sin.stride(),
        BY_TOKEN=by_token, HALF=half, BH=triton.next_power_of_2(half), num_warps=1,
    )
    return out
