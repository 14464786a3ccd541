"""A fast path takes the angles of 16 rows as one tile of consecutive positions; it asks whether heads * seq is a multiple of 16, not seq.

op: rope
status: failed
cause: fast-path
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half, cos_s, cos_h, sin_s, sin_h,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < half)
    if WHOLE:  # one remainder for all rows
        positions = first % seq + tl.arange(0, ROWS)
    else:
        positions = rows % seq
    angle_mask = mask & (positions[:, None] < seq)
    cos = tl.load(cos_ptr + positions[:, None] * cos_s + cols[None, :] * cos_h, mask=angle_mask, other=0.0)
    sin = tl.load(sin_ptr + positions[:, None] * sin_s + cols[None, :] * sin_h, mask=angle_mask, other=0.0)
    cos, sin = cos.to(tl.float32), sin.to(tl.float32)
    places = rows[:, None].to(tl.int64) * (2 * half) + cols[None, :]
    a = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + places + half, mask=mask, other=0.0).to(tl.float32)
    kind = out_ptr.dtype.element_ty
    tl.store(out_ptr + places, (a * cos - b * sin).to(kind), mask=mask)
    tl.store(out_ptr + places + half, (b * cos + a * sin).to(kind), mask=mask)


def triton_rope(x, cos, sin):
    x = x.contiguous()
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty_like(x)
    n_rows = batch * heads * seq
    if x.numel() == 0:
        return out
    rows = 16
    whole = (heads * seq) % rows == 0  # no tile crosses the end of a sequence
    kernel[(triton.cdiv(n_rows, rows),)](
        x, cos, sin, out, n_rows, seq, half, *cos.stride(), *sin.stride(),
        WHOLE=whole, ROWS=rows, BLOCK=triton.next_power_of_2(half),
    )
    return out
