"""A sin that begins one half after cos counts as a packed table of two halves a row: a table that is wider, or of every second position, is read at the wrong rows.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, rows, seq, half, pitch, BR: tl.constexpr, BH: tl.constexpr):
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    col = tl.arange(0, BH)
    inside = (row < rows)[:, None] & (col < half)[None, :]
    table = (row % seq)[:, None] * pitch + col[None, :]
    cos = tl.load(cos_ptr + table, mask=inside, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + table, mask=inside, other=0.0).to(tl.float32)
    at = row[:, None] * (2 * half) + col[None, :]
    a = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=inside)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=inside)


def is_packed(cos, sin):
    """Return whether cos and sin are the two halves of one cache, [seq, 2 * half]."""
    apart = sin.data_ptr() - cos.data_ptr()
    beside = apart == cos.shape[-1] * cos.element_size()
    return beside and cos.stride() == sin.stride() and cos.stride(-1) == 1


def triton_rope(x, cos, sin):
    x = x.contiguous()
    seq, half = cos.shape
    if is_packed(cos, sin):
        pitch = 2 * half
    else:
        cos, sin, pitch = cos.contiguous(), sin.contiguous(), half
    out = torch.empty_like(x)
    rows = x.numel() // (2 * half)
    kernel[(triton.cdiv(rows, 16),)](
        x, cos, sin, out, rows, seq, half, pitch, BR=16, BH=triton.next_power_of_2(half)
    )
    return out
