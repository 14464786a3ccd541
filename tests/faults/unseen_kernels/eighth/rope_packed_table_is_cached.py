"""cos and sin are packed into one table that is saved by their address; stale once they are changed in place.

op: rope
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, table_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    line = table_ptr + (row % seq) * 2 * half
    cos = tl.load(line + cols, mask=mask, other=0.0)
    sin = tl.load(line + half + cols, mask=mask, other=0.0)
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


TABLES = {}


def table_of(cos, sin):
    key = (cos.data_ptr(), sin.data_ptr(), cos.shape, cos.stride(), sin.stride(), cos.dtype)
    if key not in TABLES:
        TABLES[key] = (torch.cat([cos, sin], dim=-1).float().contiguous(), cos, sin)
    return TABLES[key][0]


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    seq, half = cos.shape
    rows = x.numel() // (2 * half)
    kernel[(rows,)](x, table_of(cos, sin), out, seq, half, BLOCK=triton.next_power_of_2(half))
    return out
