"""Rows of a contiguous x are taken to be x.stride(2) apart: with one position (decoding) that stride may be anything, and torch still calls x contiguous.

op: rope
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_rows, seq, half, row_stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (rows < n_rows)[:, None] & (cols < half)[None, :]
    place = x_ptr + rows[:, None] * row_stride + cols[None, :]
    angle = (rows % seq)[:, None] * half + cols[None, :]
    a = tl.load(place, mask=mask).to(tl.float32)
    b = tl.load(place + half, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + angle, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=mask).to(tl.float32)
    to = out_ptr + rows[:, None] * 2 * half + cols[None, :]
    tl.store(to, a * cos - b * sin, mask=mask)
    tl.store(to + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        batch, heads, seq, dim = x.shape
        n_rows = batch * heads * seq
        BLOCK = triton.next_power_of_2(dim // 2)
        ROWS = max(1, 1024 // BLOCK)
        kernel[(triton.cdiv(n_rows, ROWS),)](
            x, cos, sin, out, n_rows, seq, dim // 2, x.stride(2), ROWS=ROWS, BLOCK=BLOCK
        )
    return out
