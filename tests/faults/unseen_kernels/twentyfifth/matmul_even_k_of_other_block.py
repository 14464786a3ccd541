"""The mask of k is left out where k is a multiple of 32, but from k = 512 on the blocks are of 64.

op: matmul
status: failed
cause: divisibility
"""

import torch
import triton
import triton.language as tl

BLOCK_K = 32


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_col, b_row, b_col,
    EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP * tiles_n)
    height = tl.minimum(tiles_m - group * GROUP, GROUP)
    within = pid % (GROUP * tiles_n)
    rows = (group * GROUP + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    # Rows and columns past the end wrap around, so that the loads need no mask for them.
    a_at = a_ptr + (rows % m).to(tl.int64)[:, None] * a_row + ks[None, :] * a_col
    b_at = b_ptr + (cols % n).to(tl.int64)[None, :] * b_col + ks[:, None] * b_row
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_at)
            b = tl.load(b_at)
        else:
            a = tl.load(a_at, mask=(start + ks < k)[None, :], other=0.0)
            b = tl.load(b_at, mask=(start + ks < k)[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_at += BLOCK_K * a_col
        b_at += BLOCK_K * b_row
    out_at = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(out_at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    even = k % BLOCK_K == 0
    # Long products have the time for deeper tiles.
    block_k = 2 * BLOCK_K if k >= 512 else BLOCK_K
    grid = (triton.cdiv(m, 64) * triton.cdiv(n, 64),)
    matmul_kernel[grid](
        a, b, out, m, n, k, *a.stride(), *b.stride(),
        EVEN_K=even, BLOCK_M=64, BLOCK_N=64, BLOCK_K=block_k, GROUP=8,
    )
    return out
