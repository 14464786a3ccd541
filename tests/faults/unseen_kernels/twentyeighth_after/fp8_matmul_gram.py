"""Right: where b is a itself, only the tiles up to the diagonal are computed; the mirrored ones get the scales in turn.

op: fp8_matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, out_ptr, m, n, k, sam, sak, sbn, sbk,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    if GRAM:  # a triangle of tiles in a row: i * (i + 1) / 2 + j
        tile = i
        i = ((tl.sqrt(8.0 * tile.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
        # The root may be off by one either way.
        i = tl.where(i * (i + 1) // 2 > tile, i - 1, i)
        i = tl.where((i + 1) * (i + 2) // 2 <= tile, i + 1, i)
        j = tile - i * (i + 1) // 2
    else:
        j = i % tl.cdiv(n, BLOCK)
        i = i // tl.cdiv(n, BLOCK)
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    long_rows, long_cols = rows.to(tl.int64), cols.to(tl.int64)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BK):
        ks = (start + tl.arange(0, BK)).to(tl.int64)
        a_mask = (rows[:, None] < m) & (ks[None] < k)
        b_mask = (ks[:, None] < k) & (cols[None] < n)
        a = tl.load(a_ptr + long_rows[:, None] * sam + ks[None] * sak, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * sbk + long_cols[None] * sbn, mask=b_mask, other=0.0)
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16))
    row_a = tl.load(scale_a_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    col_b = tl.load(scale_b_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    out = acc * row_a[:, None] * col_b[None]
    mask = (rows[:, None] < m) & (cols[None] < n)
    tl.store(out_ptr + long_rows[:, None] * n + cols[None], out, mask=mask)
    if GRAM:
        if i != j:
            # acc[r, c] is also the sum for row c and column r; m is n.
            col_a = tl.load(scale_a_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
            row_b = tl.load(scale_b_ptr + rows, mask=rows < n, other=0.0).to(tl.float32)
            out = acc * col_a[None] * row_b[:, None]
            tl.store(out_ptr + long_cols[None] * n + rows[:, None], out, mask=mask)


def is_same(a, b):
    """Return whether a and b are the same elements in the same order."""
    return (
        a.device == b.device
        and a.data_ptr() == b.data_ptr()
        and a.shape == b.shape
        and a.stride() == b.stride()
    )


def triton_fp8_matmul(a, b, scale_a, scale_b):
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    block, bk = 32, 64
    tiles_m, tiles_n = triton.cdiv(m, block), triton.cdiv(n, block)
    gram = is_same(a, b)
    grid = (tiles_m * (tiles_m + 1) // 2 if gram else tiles_m * tiles_n,)
    kernel[grid](
        a, b, scale_a.contiguous(), scale_b.contiguous(), out, m, n, k, *a.stride(), *b.stride(),
        GRAM=gram, BLOCK=block, BK=bk,
    )  # fmt: skip
    return out
