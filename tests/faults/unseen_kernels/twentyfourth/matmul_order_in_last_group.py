"""The column of a tile is divided by the full height of a group also in the last, lower group: some tiles are never computed.

op: matmul
status: failed
cause: order
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, m, n, k, a_m, a_k, b_k, b_n,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid = tl.program_id(0)
    down, across = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    # Tiles go down a group of rows before they go to the next column: b's tiles are still in the cache.
    of_group = GROUP * across
    first = pid // of_group * GROUP
    height = tl.minimum(down - first, GROUP)
    i = first + pid % of_group % height
    j = pid % of_group // GROUP
    rows = i.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = j.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        at = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None] * a_m + at[None, :] * a_k, mask=(rows < m)[:, None] & (at < k)[None, :], other=0.0
        )
        b = tl.load(
            b_ptr + at[:, None] * b_k + cols[None, :] * b_n, mask=(at < k)[:, None] & (cols < n)[None, :], other=0.0
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if out.numel():
        BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 32
        down, across = triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N)
        kernel[(down * across,)](
            a, b, out, m, n, k, *a.stride(), *b.stride(),
            GROUP=8 if down >= 8 else 1,  # a few rows of tiles stay in the cache anyway
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        )
    return out
