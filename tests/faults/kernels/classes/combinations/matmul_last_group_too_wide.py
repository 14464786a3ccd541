"""Over four rows of tiles they are walked in groups of four, also in a last group that has fewer.

op: matmul
status: failed
cause: truncated_extent
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid = tl.program_id(0)
    n_tiles = tl.cdiv(N, BN)
    if tl.cdiv(M, BM) <= GROUP:
        tile_m, tile_n = pid // n_tiles, pid % n_tiles
    else:
        in_group = pid % (GROUP * n_tiles)
        tile_m = pid // (GROUP * n_tiles) * GROUP + in_group % GROUP
        tile_n = in_group // GROUP
    rows = tile_m.to(tl.int64) * BM + tl.arange(0, BM)
    cols = tile_n.to(tl.int64) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 32),)
    kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), GROUP=4, BM=32, BN=32, BK=32
    )
    return c
