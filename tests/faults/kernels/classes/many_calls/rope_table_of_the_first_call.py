"""The table of angles is kept by its shape, because it never changes in a model.

op: rope
status: failed
cause: stale_cache
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, table_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    position = (row % seq) * 2 * half
    cos = tl.load(table_ptr + position + cols, mask=mask).to(tl.float32)
    sin = tl.load(table_ptr + position + half + cols, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


TABLES = {}


def triton_rope(x, cos, sin):
    x = x.contiguous()
    batch, heads, seq, dim = x.shape
    key = (seq, dim, x.dtype, x.device)
    if key not in TABLES:
        TABLES[key] = torch.cat([cos, sin], dim=-1).contiguous()
    out = torch.empty_like(x)
    kernel[(batch * heads * seq,)](
        x, TABLES[key], out, seq, dim // 2, BLOCK=triton.next_power_of_2(dim // 2)
    )
    return out
