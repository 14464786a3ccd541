"""cos and sin are not read: the angles are made again from the position with the usual base, right for tables that begin at position 0 only.

op: rope
status: failed
cause: ignored input
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n_rows, seq, half, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (rows < n_rows)[:, None] & (cols < half)[None, :]
    # two loads of tables saved: base ** (-i / half) is one exp2
    speed = tl.exp2(cols.to(tl.float32) / half * -13.287712379549449)
    angle = (rows % seq).to(tl.float32)[:, None] * speed[None, :]
    cos, sin = tl.cos(angle), tl.sin(angle)
    places = rows[:, None].to(tl.int64) * (2 * half) + cols[None, :]
    a = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + places + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + places, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + places + half, b * cos + a * sin, mask=inside)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    half, seq = x.shape[-1] // 2, x.shape[-2]
    n_rows = x.numel() // (2 * half)
    kernel[(triton.cdiv(n_rows, 8),)](x, out, n_rows, seq, half, ROWS=8, BLOCK=triton.next_power_of_2(half))
    return out
