"""Eight splits of a long k get a multiple of 64 each, rounded down: what is left over behind the last is not added.

op: fp8_matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, part_ptr, m, n, k, chunk, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    split = tl.program_id(2)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, chunk, BK):
        ks = split * chunk + start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * k + ks[None, :],
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        ).to(tl.float32)
        b = tl.load(
            b_ptr + cols[:, None].to(tl.int64) * k + ks[None, :],
            mask=(cols < n)[:, None] & (ks < k)[None, :], other=0.0,
        ).to(tl.float32)
        acc += tl.dot(a, tl.trans(b), input_precision="ieee")
    place = split.to(tl.int64) * m * n + rows[:, None] * n + cols[None, :]
    tl.store(part_ptr + place, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def join(part_ptr, sa_ptr, sb_ptr, out_ptr, m, n, splits, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < m * n
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(0, splits):
        total += tl.load(part_ptr + split * m * n + at, mask=inside, other=0.0)
    sa = tl.load(sa_ptr + at // n, mask=inside, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + at % n, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, total * sa * sb, mask=inside)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = a.contiguous(), b.contiguous(), scale_a.contiguous(), scale_b.contiguous()
    m, k = a.shape
    n = b.shape[0]
    tiles = triton.cdiv(m, 32), triton.cdiv(n, 32)
    if k >= 2048 and tiles[0] * tiles[1] < 64:
        splits, chunk = 8, k // 8 // 64 * 64
    else:
        splits, chunk = 1, triton.cdiv(k, 64) * 64
    parts = torch.empty((splits, m, n), dtype=torch.float32, device=a.device)
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    kernel[(*tiles, splits)](a, b, parts, m, n, k, chunk, BM=32, BN=32, BK=64)
    join[(triton.cdiv(m * n, 1024),)](parts, scale_a, scale_b, out, m, n, splits, BLOCK=1024)
    return out
