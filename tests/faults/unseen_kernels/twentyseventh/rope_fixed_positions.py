"""Right: looks as if positions drift in the persistent loop, but its step is always a multiple of the sequence.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, all_heads, seq, half,
    x_b, x_h, x_s, x_d, cos_s, cos_d, sin_s, sin_d, BLOCK: tl.constexpr,
):
    """A program has one position, and every so manieth head, from the last to the first."""
    position = (tl.program_id(0) % seq).to(tl.int64)
    step = tl.num_programs(0) // seq
    last = all_heads - 1 - (tl.program_id(0) // seq).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    for start in range(0, half, BLOCK):
        cols = (start + lanes).to(tl.int64)
        mask = cols < half
        cos = tl.load(cos_ptr + position * cos_s + cols * cos_d, mask=mask, other=0.0)
        sin = tl.load(sin_ptr + position * sin_s + cols * sin_d, mask=mask, other=0.0)
        cos, sin = cos.to(tl.float32), sin.to(tl.float32)
        for j in range(0, last // step + 1):
            i = last - j * step
            x = x_ptr + (i // heads) * x_b + (i % heads) * x_h
            x += position * x_s + cols * x_d
            a = tl.load(x, mask=mask, other=0.0).to(tl.float32)
            b = tl.load(x + half * x_d, mask=mask, other=0.0).to(tl.float32)
            out = out_ptr + (i * seq + position) * 2 * half + cols
            tl.store(out + half, b * cos + a * sin, mask=mask)
            tl.store(out, a * cos - b * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        loops = max(1, min(batch * heads, 1024 // seq))
        kernel[(seq * loops,)](
            x, cos, sin, out, heads, batch * heads, seq, dim // 2,
            *x.stride(), *cos.stride(), *sin.stride(),
            BLOCK=min(128, triton.next_power_of_2(dim // 2)),
        )
    return out
