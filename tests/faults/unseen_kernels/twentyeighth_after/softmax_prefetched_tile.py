"""The last prefetched tile of a program is stored where the longest programs end: some programs end a round earlier, their last tile is lost.

op: softmax
status: failed
cause: coverage
"""

import torch
import triton
import triton.language as tl


@triton.jit
def load(x_ptr, tile, rows, m, R: tl.constexpr, BLOCK: tl.constexpr):
    row = (tile * R + tl.arange(0, R)).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (col[None] < m)
    x = tl.load(x_ptr + row[:, None] * m + col[None], mask=mask, other=float("-inf"))
    return x.to(tl.float32)


@triton.jit
def store(out_ptr, x, tile, rows, m, R: tl.constexpr, BLOCK: tl.constexpr):
    row = (tile * R + tl.arange(0, R)).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (col[None] < m)
    weights = tl.exp(x - tl.max(x, axis=1)[:, None])
    out = weights / tl.sum(weights, axis=1)[:, None]
    tl.store(out_ptr + row[:, None] * m + col[None], out, mask=mask)


@triton.jit
def kernel(x_ptr, out_ptr, rows, m, tiles, R: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0)
    step = tl.num_programs(0)
    x = load(x_ptr, first, rows, m, R, BLOCK)
    for tile in range(first + step, tiles, step):
        following = load(x_ptr, tile, rows, m, R, BLOCK)  # under way while x is computed
        store(out_ptr, x, tile - step, rows, m, R, BLOCK)
        x = following
    last = (tiles - 1) // step * step + first
    store(out_ptr, x, last, rows, m, R, BLOCK)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty_like(x)
    block = triton.next_power_of_2(m)
    per_tile = max(1, min(4, 8192 // block))
    tiles = triton.cdiv(rows, per_tile)
    warps = 4 if block <= 2048 else 8
    kernel[(min(tiles, 256),)](x, out, rows, m, tiles, R=per_tile, BLOCK=block, num_warps=warps)
    return out
