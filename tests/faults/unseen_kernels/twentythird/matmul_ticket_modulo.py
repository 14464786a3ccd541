"""Split-K tickets are counted on from call to call and taken modulo the number of splits: after a call with fewer splits a call with more of them adds up too early.

op: matmul
status: failed
cause: leftover
"""

import torch
import triton
import triton.language as tl

_tickets = {}


@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, part_ptr, ticket_ptr, m, n, k, a_m, a_k, b_k, b_n,
    SPLIT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    tile, part = tl.program_id(0), tl.program_id(1)
    tiles_n = tl.cdiv(n, BLOCK_N)
    rows = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(part * BLOCK_K, k, SPLIT * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_m + ks[None, :].to(tl.int64) * a_k,
            mask=(rows < m)[:, None] & (ks < k)[None, :], other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None].to(tl.int64) * b_k + cols[None, :].to(tl.int64) * b_n,
            mask=(ks < k)[:, None] & (cols < n)[None, :], other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    places = rows[:, None].to(tl.int64) * n + cols[None, :]
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    if SPLIT == 1:
        tl.store(out_ptr + places, acc, mask=mask)
    else:
        size = m * n  # small: there are few tiles
        tl.store(part_ptr + part * size + places, acc, mask=mask)
        tl.debug_barrier()
        # The last program of a tile adds the parts, always in the same order. The modulo saves
        # a launch that zeroes the tickets: each call leaves a multiple of SPLIT.
        ticket = tl.atomic_add(ticket_ptr + tile, 1, sem="acq_rel")
        if ticket % SPLIT == SPLIT - 1:
            tl.debug_barrier()
            total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for i in range(SPLIT):
                total += tl.load(part_ptr + i * size + places, mask=mask, other=0.0, cache_modifier=".cg")
            tl.store(out_ptr + places, total, mask=mask)


def tickets_of(device, n_tiles):
    if device not in _tickets or _tickets[device].numel() < n_tiles:
        _tickets[device] = torch.zeros(max(64, n_tiles), dtype=torch.int32, device=device)
    return _tickets[device]


def triton_matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    if not out.numel():
        return out
    n_tiles = triton.cdiv(m, 64) * triton.cdiv(n, 64)
    split = 1
    while split < 8 and split * n_tiles < 128 and k > split * 1024:
        split *= 2
    parts = torch.empty((split, m, n) if split > 1 else 0, dtype=torch.float32, device=a.device)
    kernel[(n_tiles, split)](
        a, b, out, parts, tickets_of(a.device, n_tiles), m, n, k, *a.stride(), *b.stride(),
        SPLIT=split, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )
    return out
