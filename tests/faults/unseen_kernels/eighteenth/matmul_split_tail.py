"""Few tiles with a long k are split into four; the last split adds one ragged tile, but up to four tiles less an element can be left over.

op: matmul
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial(
    a_ptr, b_ptr, out_ptr, m, n, k, per, SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    split = tl.program_id(2)
    first = split * per
    count = per
    if split == SPLITS - 1:
        # The last one also takes the tile that k leaves over.
        if k > SPLITS * per * BK:
            count = per + 1
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tile in range(0, count):
        ks = (first + tile) * BK + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * k + ks[None, :], mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0
        )
        b = tl.load(
            b_ptr + ks[:, None] * n + cols[None, :], mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0
        )
        acc += tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    at = split * m * n + rows[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def combine(parts_ptr, out_ptr, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLITS):
        total += tl.load(parts_ptr + split * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total, mask=at < size)


def triton_matmul(a, b):
    a, b = a.contiguous(), b.contiguous()
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    if grid[0] * grid[1] <= 8 and k >= 512:
        parts = torch.empty((4, m, n), dtype=torch.float32, device=a.device)
        partial[(*grid, 4)](a, b, parts, m, n, k, k // (4 * 32), SPLITS=4, BM=32, BN=32, BK=32)
        combine[(triton.cdiv(m * n, 1024),)](parts, out, m * n, SPLITS=4, BLOCK=1024)
    else:
        partial[(*grid, 1)](a, b, out, m, n, k, triton.cdiv(k, 32), SPLITS=1, BM=32, BN=32, BK=32)
    return out
