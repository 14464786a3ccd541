"""torch negates one half and joins it with the other; Triton multiplies and adds.

op: rope
status: failed
cause: torch_computed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, turned_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < 2 * half
    table = row % seq * half + cols % half
    x = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    turned = tl.load(turned_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + table, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, x * cos + turned * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    a, b = x.chunk(2, dim=-1)
    turned = torch.cat((-b, a), dim=-1)
    out = torch.empty_like(x)
    batch, heads, seq, dim = x.shape
    kernel[(batch * heads * seq,)](
        x, turned, cos, sin, out, seq, dim // 2, BLOCK=triton.next_power_of_2(dim)
    )
    return out
