"""Every input and output stays in a list, so the memory of a process grows with each call.

op: rope
status: failed
cause: side_effect
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + row % seq * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + row % seq * half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


IN_FLIGHT = []


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    batch, heads, seq, dim = x.shape
    out = torch.empty_like(x)
    kernel[(batch * heads * seq,)](
        x, cos, sin, out, seq, dim // 2, BLOCK=triton.next_power_of_2(dim // 2)
    )
    IN_FLIGHT.append((x, cos, sin, out))
    return out
