"""Tables that lie beside each other are taken for the halves of one table: wrong when its rows are wider than the two.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, half, table_row, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    position = row % seq
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    cos = tl.load(cos_ptr + position * table_row + cols, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + position * table_row + cols, mask=mask, other=0.0).to(tl.float32)
    base = row * 2 * half + cols
    a = tl.load(x_ptr + base, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + base + half, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + base, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + base + half, b * cos + a * sin, mask=mask)


def one_table(cos, sin, half):
    """Say whether cos and sin are the halves of a fused table, as chunk(2, -1) returns them."""
    beside = sin.data_ptr() - cos.data_ptr() == half * cos.element_size()
    return beside and cos.stride(1) == 1 and cos.stride() == sin.stride() and not cos.is_contiguous()


def triton_rope(x, cos, sin):
    x = x.contiguous()
    seq, half = cos.shape
    if one_table(cos, sin, half):
        table_row = 2 * half
    else:
        cos, sin, table_row = cos.contiguous(), sin.contiguous(), half
    out = torch.empty_like(x)
    kernel[(x.numel() // (2 * half),)](
        x, cos, sin, out, seq, half, table_row, BLOCK=triton.next_power_of_2(half)
    )
    return out
