"""Tiles of keys before the tile of queries need no mask, but heads wider than 128 have 32 queries and 64 keys a tile, which reach beyond.

op: mha
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def step(q, k_ptr, v_ptr, base, start, seq, dim, scale, rows, ds, largest, total, acc, MASKED: tl.constexpr, BN: tl.constexpr):
    cols = start + tl.arange(0, BN)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    at = base + cols[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    allowed = (cols < seq)[None, :]
    if MASKED:
        allowed = allowed & (cols[None, :] <= rows[:, None])
    scores = tl.where(allowed, scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, axis=1))
    p = tl.exp(scores - new[:, None])
    shrink = tl.exp(largest - new)
    total = total * shrink + tl.sum(p, axis=1)
    acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
    return new, total, acc


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    first = tl.program_id(1) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    at_rows = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + at_rows, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    if CAUSAL:
        for start in range(0, first, BN):
            largest, total, acc = step(
                q, k_ptr, v_ptr, base, start, seq, dim, scale, rows, ds, largest, total, acc, False, BN
            )
        for start in range(first, tl.minimum(first + BM, seq), BN):
            largest, total, acc = step(
                q, k_ptr, v_ptr, base, start, seq, dim, scale, rows, ds, largest, total, acc, True, BN
            )
    else:
        for start in range(0, seq, BN):
            largest, total, acc = step(
                q, k_ptr, v_ptr, base, start, seq, dim, scale, rows, ds, largest, total, acc, False, BN
            )
    tl.store(out_ptr + at_rows, acc / total[:, None], mask=inside)


def tiles(dim):
    """Queries and keys a tile: wide heads leave registers for fewer queries."""
    return (64, 32) if dim <= 64 else (64, 64) if dim <= 128 else (32, 64)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    bm, bn = tiles(dim)
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal,
        BM=bm, BN=bn, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
