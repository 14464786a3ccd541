"""The output has the strides of x, to read and write at the same places; positions of an expanded x share one place.

op: rope
status: failed
cause: overlap
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, heads, seq, half, x_b, x_h, x_s, x_d, cos_s, cos_d, sin_s, sin_d,
    ROWS: tl.constexpr, BLOCK_HALF: tl.constexpr,
):
    tiles = tl.cdiv(seq, ROWS)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    rows = (tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    cols = tl.arange(0, BLOCK_HALF).to(tl.int64)[None, :]
    mask = (rows < seq) & (cols < half)
    left = head // heads * x_b + head % heads * x_h + rows * x_s + cols * x_d
    right = left + tl.full((), half, tl.int64) * x_d
    a = tl.load(x_ptr + left, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + right, mask=mask).to(tl.float32)
    cos = tl.load(cos_ptr + rows * cos_s + cols * cos_d, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + rows * sin_s + cols * sin_d, mask=mask).to(tl.float32)
    tl.store(out_ptr + left, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + right, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    # The layout of x, be it transposed or a slice of a packed q, k and v: no copy before or after.
    out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)
    half = dim // 2
    if out.numel():
        BLOCK_HALF = triton.next_power_of_2(half)
        ROWS = max(1, min(64, 1024 // BLOCK_HALF))
        rope_kernel[(batch * heads * triton.cdiv(seq, ROWS),)](
            x, cos, sin, out, heads, seq, half, *x.stride(), *cos.stride(), *sin.stride(),
            ROWS=ROWS, BLOCK_HALF=BLOCK_HALF,
        )
    return out
