"""The split-K path for deep products gives each program k // SPLIT terms, which tiles of 64 may overrun: terms count twice.

op: matmul
status: failed
cause: split-k
"""

import torch
import triton
import triton.language as tl

BLOCK_K = 64
DEPTH = 16  # k is this many times the larger side of the output, or more


@triton.jit
def tiles(a_ptr, b_ptr, out_ptr, m, n, k, per_split, am, ak, bk, bn,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    split = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    first = split * per_split
    for start in range(first, first + per_split, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows.to(tl.int64)[:, None] * am + ks.to(tl.int64)[None, :] * ak,
                    mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0)  # fmt: skip
        b = tl.load(b_ptr + ks.to(tl.int64)[:, None] * bk + cols.to(tl.int64)[None, :] * bn,
                    mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0)  # fmt: skip
        total = tl.dot(a, b, total, input_precision="ieee")
    at = split.to(tl.int64) * m * n + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(out_ptr + at, total, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def add_splits(part_ptr, out_ptr, size, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLIT):
        total += tl.load(part_ptr + split * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, total, mask=at < size)


def choose_split(m, n, k):
    if m > 32 or k < DEPTH * max(m, n) or k % BLOCK_K:
        return 1
    return 8 if k >= 2048 else 4 if k >= 1024 else 1


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    split = choose_split(m, n, k)
    bm = 32 if m <= 32 else 64
    grid = (triton.cdiv(m, bm), triton.cdiv(n, 64), split)
    strides = (*a.stride(), *b.stride())
    if split == 1:
        tiles[grid](a, b, out, m, n, k, k, *strides, BM=bm, BN=64, BK=BLOCK_K)
        return out
    parts = torch.empty((split, m, n), dtype=torch.float32, device=a.device)
    tiles[grid](a, b, parts, m, n, k, k // split, *strides, BM=bm, BN=64, BK=BLOCK_K)
    add_splits[(triton.cdiv(m * n, 1024),)](parts, out, m * n, SPLIT=split, BLOCK=1024)
    return out
