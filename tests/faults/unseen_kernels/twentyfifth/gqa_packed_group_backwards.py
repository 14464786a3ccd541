"""Right: the heads of a group lie in one tile, position by position, and the keys are walked from the last to the first.

op: gqa
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seq"])
def gqa_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, group, scale, IS_CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Row r of a tile is the position r // group of the head r % group."""
    packed = seq * group
    tiles = tl.cdiv(packed, BLOCK_M)
    pair = (tl.program_id(0) // tiles).to(tl.int64)  # of a batch and a head of keys
    tile = tiles - 1 - tl.program_id(0) % tiles  # those with the most keys come first
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    position, head = rows // group, rows % group
    ds = tl.arange(0, BLOCK_D)
    at = (pair * packed + head * seq + position)[:, None] * dim + ds[None, :]
    inside = (rows < packed)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = seq
    if IS_CAUSAL:
        end = tl.minimum(seq, ((tile + 1) * BLOCK_M - 1) // group + 1)
    steps = tl.cdiv(end, BLOCK_N)
    for i in range(0, steps):
        cols = (steps - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        there = (pair * seq + cols)[:, None] * dim + ds[None, :]
        valid = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + there, mask=valid, other=0.0)
        v = tl.load(v_ptr + there, mask=valid, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = (cols < seq)[None, :]
        if IS_CAUSAL:
            mask = mask & (cols[None, :] <= position[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        # The first tiles may hold no key that a row sees: nothing is added then.
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        shrink = tl.exp2(largest - safe)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(seq * group, 32) * batch * kv_heads,)
    gqa_kernel[grid](
        q, k, v, out, seq, dim, group, math.log2(math.e) / math.sqrt(dim), IS_CAUSAL=bool(is_causal),
        BLOCK_M=32, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )
    return out
