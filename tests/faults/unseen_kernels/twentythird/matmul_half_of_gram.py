"""Right: where b is a's own transpose, only the tiles of the lower triangle are computed, and each is stored twice.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    GRAM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    if GRAM:
        # Tile t of a triangle lies in row (sqrt(8 t + 1) - 1) / 2; the root may be off by one.
        i = ((tl.sqrt(8.0 * tile.to(tl.float32) + 1.0) - 1.0) * 0.5).to(tl.int32)
        i = tl.where(i * (i + 1) // 2 > tile, i - 1, i)
        i = tl.where((i + 1) * (i + 2) // 2 <= tile, i + 1, i)
        j = tile - i * (i + 1) // 2
    else:
        i = tile // tl.cdiv(n, BLOCK)
        j = tile % tl.cdiv(n, BLOCK)
    rows = i * BLOCK + tl.arange(0, BLOCK)
    cols = j * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_m + ks[None, :].to(tl.int64) * a_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * b_k + cols[None, :].to(tl.int64) * b_n,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :], acc, mask=mask)
    if GRAM:
        if i != j:
            mirror = out_ptr + cols[:, None].to(tl.int64) * n + rows[None, :]
            tl.store(mirror, tl.trans(acc), mask=tl.trans(mask))


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    # The same elements in the same places, read the other way round.
    gram = a.data_ptr() == b.data_ptr() and m == n and b.stride() == a.stride()[::-1]
    tiles_m, tiles_n = triton.cdiv(m, 32), triton.cdiv(n, 32)
    grid = tiles_m * (tiles_m + 1) // 2 if gram else tiles_m * tiles_n
    kernel[(grid,)](a, b, out, m, n, k, *a.stride(), *b.stride(), GRAM=gram, BLOCK=32, BLOCK_K=32)
    return out
