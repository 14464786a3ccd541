"""The position comes from a float32 reciprocal of the sequence's length: past some millions of rows it is off by one.

op: rope
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half, per_seq,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < half)
    # Integer division takes some twenty instructions. The half keeps it off the whole numbers.
    heads = ((rows.to(tl.float32) + 0.5) * per_seq).to(tl.int32)
    places = rows - heads * seq
    table = places[:, None] * half + cols[None, :]
    cos = tl.load(cos_ptr + table, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=mask, other=0.0).to(tl.float32)
    at = rows[:, None].to(tl.int64) * (2 * half) + cols[None, :]
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    seq, half = cos.shape
    out = torch.empty_like(x)
    n_rows = x.numel() // (2 * half)
    block = triton.next_power_of_2(half)
    rows = max(1, 4096 // block)
    grid = (triton.cdiv(n_rows, rows),)
    kernel[grid](x, cos, sin, out, n_rows, seq, half, 1.0 / seq, ROWS=rows, BLOCK=block)
    return out
