"""Right: keys from the last to the first, and sums rescaled only where the maximum grows by more than 2^8.

op: mha
status: passed
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(0).to(tl.int64) * seq * dim
    tile = tl.num_programs(1) - 1 - tl.program_id(1)  # the longest first
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    inside = (rows[:, None] < seq) & (d[None, :] < dim)
    place = base + rows[:, None].to(tl.int64) * dim + d[None, :]
    q = tl.load(q_ptr + place, mask=inside, other=0.0)
    level = tl.full((BLOCK_M,), -1e38, tl.float32)  # at most 8 below the maximum so far
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * BLOCK_M)
    tiles = tl.cdiv(end, BLOCK_N)
    for step in range(tiles):
        cols = (tiles - 1 - step) * BLOCK_N + tl.arange(0, BLOCK_N)
        here = (cols[:, None] < seq) & (d[None, :] < dim)
        at = base + cols[:, None].to(tl.int64) * dim + d[None, :]
        k = tl.load(k_ptr + at, mask=here, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = cols[None, :] < seq
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        top = tl.maximum(level, tl.max(scores, axis=1))
        if tl.max(top - level, axis=0) > 8.0:
            shrink = tl.exp2(level - top)
            total *= shrink
            acc *= shrink[:, None]
            level = top
        p = tl.exp2(scores - level[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptr + at, mask=here, other=0.0)
        acc += tl.dot(p.to(v.dtype), v, input_precision="ieee")
    tl.store(out_ptr + place, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, out, seq, dim, math.log2(math.e) / math.sqrt(dim), CAUSAL=bool(is_causal),
        BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )  # fmt: skip
    return out
