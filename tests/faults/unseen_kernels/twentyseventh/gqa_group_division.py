"""Rows are divided by the group with a 16-bit reciprocal: in long sequences some rows see one key of the future.

op: gqa
status: failed
cause: division
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, tiles, scale,
    GROUP: tl.constexpr, RECIPROCAL: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """A tile has the rows of all heads of a group: (position, head in the group)."""
    kv_head = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    # A division is some twenty instructions, this is two.
    positions = ((rows.to(tl.int64) * RECIPROCAL) >> 16).to(tl.int32)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq * GROUP)[:, None] & (ds < dim)[None, :]
    places = (kv_head * seq * GROUP + rows)[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, tl.max(positions, axis=0) + 1)
    for start in range(0, end, BLOCK_N):
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
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + at, mask=there, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    q = q.reshape(batch, kv_heads, group, seq, dim).transpose(2, 3).contiguous()
    k, v = k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    if out.numel():
        tiles = triton.cdiv(seq * group, 64)
        kernel[(batch * kv_heads * tiles,)](
            q, k, v, out, seq, dim, tiles, math.log2(math.e) / math.sqrt(dim),
            GROUP=group, RECIPROCAL=triton.cdiv(65536, group), CAUSAL=bool(is_causal),
            BLOCK_M=64, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out.transpose(2, 3).reshape(batch, heads, seq, dim)
