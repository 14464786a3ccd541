"""A fixed number of programs, each doing every so many tiles.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0)):
        rows = (tile // tiles_n) * BM + tl.arange(0, BM)
        cols = (tile % tiles_n) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, K, BK):
            ks = start + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :],
                        mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
            b = tl.load(b_ptr + ks[:, None] * N + cols[None, :],
                        mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
            acc += tl.dot(a, b, input_precision="ieee")
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(M, 64) * triton.cdiv(N, 64)
    kernel[(min(tiles, 10),)](a, b, c, M, N, K, BM=64, BN=64, BK=64)
    return c
