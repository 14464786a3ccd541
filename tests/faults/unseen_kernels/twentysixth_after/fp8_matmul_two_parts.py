"""Blocks of k are dealt out evenly to programs, across the ends of tiles, with room for two parts of a tile: with an odd number of
blocks a tile may have three, and the last one overwrites the middle one.

op: fp8_matmul
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

PROGRAMS = 132


@triton.jit
def store(out_ptr, acc, sa_ptr, sb_ptr, rows, cols, m, n):
    sa = tl.load(sa_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    sb = tl.load(sb_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(out_ptr + rows[:, None] * n + cols[None, :], acc * sa[:, None] * sb[None, :], mask=mask)


@triton.jit
def dealt_kernel(
    a_ptr, b_ptr, sa_ptr, sb_ptr, parts_ptr, out_ptr, m, n, k, depth, share, total,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    across = tl.cdiv(n, BLOCK)
    here = tl.program_id(0) * share
    end = tl.minimum(here + share, total)
    inside = tl.arange(0, BLOCK)
    while here < end:
        tile = here // depth
        first = here - tile * depth
        last = tl.minimum(depth, first + end - here)
        rows = (tile // across).to(tl.int64) * BLOCK + inside
        cols = (tile % across).to(tl.int64) * BLOCK + inside
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for block in range(first, last):
            ks = block * BLOCK_K + tl.arange(0, BLOCK_K)
            a_mask = (rows < m)[:, None] & (ks < k)[None, :]
            b_mask = (cols < n)[None, :] & (ks < k)[:, None]
            a = tl.load(a_ptr + rows[:, None] * k + ks[None, :], mask=a_mask, other=0.0)
            b = tl.load(b_ptr + cols[None, :] * k + ks[:, None], mask=b_mask, other=0.0)
            acc = tl.dot(a.to(tl.float16), b.to(tl.float16), acc)
        if last - first == depth:  # the whole tile
            store(out_ptr, acc, sa_ptr, sb_ptr, rows, cols, m, n)
        else:  # a program has at least half a tile: a tile has a beginning and an end
            slot = tile.to(tl.int64) * 2
            if first > 0:
                slot += 1
            tl.store(parts_ptr + slot * BLOCK * BLOCK + inside[:, None] * BLOCK + inside[None, :], acc)
        here += last - first


@triton.jit
def join_kernel(parts_ptr, sa_ptr, sb_ptr, out_ptr, m, n, depth, share, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    if (tile * depth) // share != (tile * depth + depth - 1) // share:  # it was divided
        inside = tl.arange(0, BLOCK)
        parts_ptr += tile.to(tl.int64) * 2 * BLOCK * BLOCK
        places = inside[:, None] * BLOCK + inside[None, :]
        acc = tl.load(parts_ptr + places) + tl.load(parts_ptr + BLOCK * BLOCK + places)
        across = tl.cdiv(n, BLOCK)
        rows = (tile // across).to(tl.int64) * BLOCK + inside
        cols = (tile % across).to(tl.int64) * BLOCK + inside
        store(out_ptr, acc, sa_ptr, sb_ptr, rows, cols, m, n)


def triton_fp8_matmul(a, b, scale_a, scale_b):
    a, b, scale_a, scale_b = (t.contiguous() for t in (a, b, scale_a, scale_b))
    (m, k), n = a.shape, b.shape[0]
    out = torch.empty((m, n), dtype=scale_a.dtype, device=a.device)
    if out.numel():
        BLOCK, BLOCK_K = 64, 64
        tiles, depth = triton.cdiv(m, BLOCK) * triton.cdiv(n, BLOCK), max(1, triton.cdiv(k, BLOCK_K))
        total = tiles * depth
        share = triton.cdiv(total, PROGRAMS)
        share = max(share, triton.cdiv(depth, 2))  # no more than two programs a tile
        parts = torch.empty((tiles, 2, BLOCK, BLOCK), dtype=torch.float32, device=a.device)
        dealt_kernel[(triton.cdiv(total, share),)](
            a, b, scale_a, scale_b, parts, out, m, n, k, depth, share, total, BLOCK=BLOCK, BLOCK_K=BLOCK_K
        )
        join_kernel[(tiles,)](parts, scale_a, scale_b, out, m, n, depth, share, BLOCK=BLOCK)
    return out
