"""The staggered column of tiles is wrapped by one subtraction in place of a remainder: with more rows of tiles than columns (and one), some tiles are never written.

op: matmul
status: failed
cause: index
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, am, ak, bk, bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    n_cols = tl.cdiv(n, BLOCK_N)
    tile_m = tl.program_id(0) // n_cols
    # Each row of tiles begins one column further on, so that neighbours ask for different tiles of b.
    tile_n = tl.program_id(0) % n_cols + tile_m
    tile_n = tl.where(tile_n >= n_cols, tile_n - n_cols, tile_n)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    wide_rows, wide_cols = rows.to(tl.int64), cols.to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        wide = ks.to(tl.int64)
        a = tl.load(
            a_ptr + wide_rows[:, None] * am + wide[None] * ak, mask=(rows[:, None] < m) & (ks[None] < k), other=0.0
        )
        b = tl.load(
            b_ptr + wide[:, None] * bk + wide_cols[None] * bn, mask=(ks[:, None] < k) & (cols[None] < n), other=0.0
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rows[:, None] < m) & (cols[None] < n)
    tl.store(out_ptr + wide_rows[:, None] * n + cols[None], acc, mask=inside)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 128) * triton.cdiv(n, 64),)
    kernel[grid](a, b, out, m, n, k, *a.stride(), *b.stride(), BLOCK_M=128, BLOCK_N=64, BLOCK_K=32, num_warps=8)
    return out
