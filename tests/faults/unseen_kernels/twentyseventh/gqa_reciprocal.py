"""Right: rows are divided by the group with a reciprocal, which is exact as the host checks, and keys come backwards.

op: gqa
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, tiles, scale, GROUP: tl.constexpr,
    RECIPROCAL: tl.constexpr, SHIFT: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """A tile has the rows of all heads of a group: (position, head in the group)."""
    kv_head = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    # A division is some twenty instructions, this is two.
    positions = rows // GROUP
    if SHIFT > 0:
        positions = ((rows.to(tl.int64) * RECIPROCAL) >> SHIFT).to(tl.int32)
    heads = rows - positions * GROUP
    ds = tl.arange(0, BLOCK_D)
    inside = (positions < seq)[:, None] & (ds < dim)[None, :]
    places = ((kv_head * GROUP + heads) * seq + positions) * dim
    places = places[:, None] + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, tl.max(positions, axis=0) + 1)
    # The diagonal first. A row may not see any key of the first tile: its maximum is -inf then.
    for start in range((end - 1) // BLOCK_N * BLOCK_N, -1, -BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        at = (kv_head * seq + keys)[:, None] * dim + ds[None, :]
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= positions[:, None])
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        shrink = tl.exp2(largest - safe)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + at, mask=there, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    if out.numel():
        tiles = triton.cdiv(seq * group, 64)
        # 2**20 / group, rounded up, is too large by e / group: exact while rows * e < 2**20.
        reciprocal = triton.cdiv(2**20, group)
        exact = tiles * 64 * (reciprocal * group - 2**20) < 2**20
        kernel[(batch * kv_heads * tiles,)](
            q, k, v, out, seq, dim, tiles, math.log2(math.e) / math.sqrt(dim),
            GROUP=group, RECIPROCAL=reciprocal, SHIFT=20 if exact else 0, CAUSAL=bool(is_causal),
            BLOCK_M=64, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
