"""Launches: where the inner dimension is split, a part's last block reads on into the next part, unless the part is a whole number of blocks.

op: matmul
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, per_part,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ATOMIC: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    begin = tl.program_id(2) * per_part
    end = begin + per_part
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(begin, end, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    where = c_ptr + rows[:, None] * N + cols[None, :]
    if ATOMIC:
        tl.atomic_add(where, acc, mask=mask)
    else:
        tl.store(where, acc, mask=mask)


def _parts(tiles, K):
    """Return into how many equal parts K is cut, so that the programs number about 64."""
    for parts in (8, 4, 2):
        if K % parts == 0 and K // parts >= 64 and tiles * parts <= 64:
            return parts
    return 1


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    BM, BN, BK = 32, 64, 32
    tiles_m, tiles_n = triton.cdiv(M, BM), triton.cdiv(N, BN)
    parts = _parts(tiles_m * tiles_n, K)
    if parts > 1:
        c = torch.zeros((M, N), dtype=torch.float32, device=a.device)
    else:
        c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(tiles_m, tiles_n, parts)](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), K // parts,
        BM=BM, BN=BN, BK=BK, ATOMIC=parts > 1,
    )
    return c.to(a.dtype)
