"""Right: a tile's row is found by a float32 product with the reciprocal, then corrected by one up or down; past 2^22 tiles by a division.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n, across, reciprocal,
    FEW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(0)
    if FEW:  # below 2^22 both numbers are exact in float32, and the product is off by less than 1
        i = (tile.to(tl.float32) * reciprocal).to(tl.int32)
        rest = tile - i * across
        i += (rest >= across).to(tl.int32) - (rest < 0).to(tl.int32)
    else:
        i = tile // across
    j = tile - i * across
    j = tl.where(i % 2 == 0, j, across - 1 - j)  # every second row of tiles from its end
    rows = i * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = j * BLOCK_N + tl.arange(0, BLOCK_N)
    far_rows, far_cols = rows.to(tl.int64), cols.to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for left in range(tl.cdiv(k, BLOCK_K), 0, -1):  # the ragged part of k first
        ks = (left - 1) * BLOCK_K + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + far_rows[:, None] * a_m + ks[None, :] * a_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_k + far_cols[None, :] * b_n,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        if a.dtype == tl.bfloat16:  # float32 products: exact
            a, b = a.to(tl.float32), b.to(tl.float32)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + far_rows[:, None] * n + far_cols[None, :], acc, mask=inside)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        across = triton.cdiv(n, 32)
        tiles = triton.cdiv(m, 32) * across
        kernel[(tiles,)](
            a, b, out, m, n, k, *a.stride(), *b.stride(), across, 1.0 / across,
            FEW=tiles < 2**22, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32,
        )
    return out
