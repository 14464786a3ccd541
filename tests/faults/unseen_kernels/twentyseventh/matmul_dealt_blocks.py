"""Right: looks as if k's tail were lost, but blocks of k are dealt to parts like cards, and a part may have none.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    a_ptr, b_ptr, parts_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn,
    PARTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The parts of a tile are next to each other in the grid; each walks k from its end."""
    pid = tl.program_id(0)
    part, tile = pid % PARTS, pid // PARTS
    tiles_n = tl.cdiv(n, BLOCK_N)
    tile_m, tile_n = tile // tiles_n, tile % tiles_n
    tile_n = tl.where(tile_m % 2 == 1, tiles_n - 1 - tile_n, tile_n)  # there and back
    rows = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    # Rows and columns past the end are others again: what they add is not stored.
    a_rows, b_cols = rows % m, cols % n
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for block in range(tl.cdiv(k, BLOCK_K) - 1 - part, -1, -PARTS):
        ks = block * BLOCK_K + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(
            a_ptr + a_rows[:, None] * stride_am + ks[None, :] * stride_ak,
            mask=(ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + b_cols[None, :] * stride_bn,
            mask=(ks < k)[:, None], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    # Parts are the last axis: those of an element are added from one cache line.
    at = (rows[:, None] * n + cols[None, :]) * PARTS + part
    tl.store(parts_ptr + at, acc, mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def sum_kernel(parts_ptr, out_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = places[:, None] * PARTS + tl.arange(0, PARTS)[None, :]
    parts = tl.load(parts_ptr + at, mask=(places < size)[:, None], other=0.0)
    tl.store(out_ptr + places, tl.sum(parts, axis=1), mask=places < size)


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    tiles = triton.cdiv(m, 32) * triton.cdiv(n, 64)
    PARTS = 4 if tiles <= 64 else 1
    sums = out
    if PARTS > 1:
        sums = torch.empty((m, n, PARTS), dtype=torch.float32, device=a.device)
    part_kernel[(tiles * PARTS,)](
        a, b, sums, m, n, k, *a.stride(), *b.stride(),
        PARTS=PARTS, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32,
    )
    if PARTS > 1:
        sum_kernel[(triton.cdiv(m * n, 256),)](sums, out, m * n, PARTS=PARTS, BLOCK=256)
    return out
