"""Right: each of 13 programs takes the same number of steps of k, over the ends of tiles; parts of tiles are kept and added by a second kernel.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def share_kernel(
    a_ptr, b_ptr, out_ptr, parts_ptr, M, N, K, per, a_m, a_k, b_k, b_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    units = tl.cdiv(M, BLOCK_M) * tiles_n * steps
    pid = tl.program_id(0)
    first = pid * per
    last = tl.minimum(first + per, units)
    i, j = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for unit in range(first, last):
        tile, step = unit // steps, unit % steps
        rows = tile // tiles_n * BLOCK_M + i
        cols = tile % tiles_n * BLOCK_N + j
        ks = (step * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_m + ks[None, :] * a_k,
            mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_k + cols[None, :].to(tl.int64) * b_n,
            mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
        if (step == steps - 1) | (unit == last - 1):  # the tile ends, or this program's share
            if (step == steps - 1) & (unit - step >= first):
                mask = (rows < M)[:, None] & (cols < N)[None, :]
                tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc, mask=mask)
            else:
                slot = (2 * pid + (tile != first // steps).to(tl.int32)).to(tl.int64)
                place = (slot * BLOCK_M + i[:, None]) * BLOCK_N + j[None, :]
                tl.store(parts_ptr + place, acc)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)


@triton.jit
def join_kernel(
    parts_ptr, out_ptr, M, N, steps, per, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Adds the parts of a tile that several programs had a share in, in the order of k."""
    tile = tl.program_id(0)
    one = tile * steps // per
    other = ((tile + 1) * steps - 1) // per
    if other > one:
        tiles_n = tl.cdiv(N, BLOCK_N)
        i, j = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for pid in range(one, other + 1):
            slot = (2 * pid + (tile != pid * per // steps).to(tl.int32)).to(tl.int64)
            acc += tl.load(parts_ptr + (slot * BLOCK_M + i[:, None]) * BLOCK_N + j[None, :])
        rows = tile // tiles_n * BLOCK_M + i
        cols = tile % tiles_n * BLOCK_N + j
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc, mask=mask)


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    if K == 0:
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if M == 0 or N == 0:
        return out
    block_m, block_n, block_k = 32, 64, 32
    tiles, steps = triton.cdiv(M, block_m) * triton.cdiv(N, block_n), triton.cdiv(K, block_k)
    per = triton.cdiv(tiles * steps, 13)
    programs = triton.cdiv(tiles * steps, per)
    parts = torch.empty((programs, 2, block_m, block_n), dtype=torch.float32, device=a.device)
    share_kernel[(programs,)](
        a, b, out, parts, M, N, K, per, *a.stride(), *b.stride(),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
    )
    join_kernel[(tiles,)](parts, out, M, N, steps, per, BLOCK_M=block_m, BLOCK_N=block_n)
    return out
