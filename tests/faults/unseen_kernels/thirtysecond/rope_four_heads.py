"""Four heads a program, stepped by the heads' stride: a group that goes on into the next batch reads other places unless x is contiguous there.

op: rope
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def turn(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, xb, xh, xs, xd, cs, cd, ss, sd,
    GROUP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The angles of some positions are read once and serve GROUP heads."""
    first = tl.program_id(1) * GROUP
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None]
    mask = (rows < seq) & (cols < half)
    cos = tl.load(cos_ptr + rows * cs + cols * cd, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + rows * ss + cols * sd, mask=mask, other=0.0).to(tl.float32)
    base = x_ptr + (first // heads).to(tl.int64) * xb + (first % heads).to(tl.int64) * xh
    for i in tl.static_range(GROUP):
        x = base + i * xh + rows.to(tl.int64) * xs + cols * xd
        a = tl.load(x, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(x + half * xd, mask=mask, other=0.0).to(tl.float32)
        out = out_ptr + ((first + i).to(tl.int64) * seq + rows) * (2 * half) + cols
        tl.store(out, a * cos - b * sin, mask=mask)
        tl.store(out + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, width = x.shape
    half = width // 2
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = batch * heads
    group = next(size for size in (4, 2, 1) if n % size == 0)
    block = triton.next_power_of_2(half)
    rows = max(1, min(16, 1024 // block))
    turn[(triton.cdiv(seq, rows), n // group)](
        x, cos, sin, out, heads, seq, half, *x.stride(), *cos.stride(), *sin.stride(),
        GROUP=group, ROWS=rows, BLOCK=block,
    )  # fmt: skip
    return out
