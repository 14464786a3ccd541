"""Rotary embedding with 32-bit offsets inside a head."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, blocks, n_heads, seq, half,
    HEADS: tl.constexpr, ROWS: tl.constexpr, BLOCK_HALF: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Turn ROWS positions of HEADS heads; EXACT: no position, head or column is past the end."""
    rows = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK_HALF)[None, :]
    mask = (rows < seq) & (cols < half) | EXACT
    cos = tl.load(cos_ptr + rows * half + cols, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + rows * half + cols, mask=mask).to(tl.float32)
    places = rows * (2 * half) + cols
    for i in tl.static_range(HEADS):
        head = tl.program_id(0) // blocks * HEADS + i
        here = mask & ((head < n_heads) | EXACT)
        start = head.to(tl.int64) * (seq * 2 * half)
        a = tl.load(x_ptr + start + places, mask=here, eviction_policy="evict_first")
        b = tl.load(x_ptr + start + places + half, mask=here, eviction_policy="evict_first")
        a, b = a.to(tl.float32), b.to(tl.float32)
        tl.store(out_ptr + start + places, a * cos - b * sin, mask=here)
        tl.store(out_ptr + start + places + half, b * cos + a * sin, mask=here)
