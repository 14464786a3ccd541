"""The reference of the softmax moves only where scores grow by 2^24: weights past 65,504 become infinite in float16.

op: attention
status: failed
cause: overflow
"""

import math

import torch
import triton
import triton.language as tl

SLACK = 24.0  # binary orders that a row may grow over its reference before it is rescaled


@triton.jit(do_not_specialize=["seq"])
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    SLACK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    tiles = tl.cdiv(seq, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    base = head * seq * dim
    at = base + rows[:, None] * dim + ds[None, :]
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0)
    reference = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        there = base + cols[:, None] * dim + ds[None, :]
        valid = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + there, mask=valid, other=0.0)
        v = tl.load(v_ptr + there, mask=valid, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        top = tl.max(s, axis=1)
        moved = top > reference + SLACK
        # Most tiles move no reference, so that acc need not be multiplied: sums in float32 hold
        # weights of 2^24 as well as those of 1.
        if tl.max(moved.to(tl.int32), axis=0) > 0:
            new = tl.where(moved, top, reference)
            shrink = tl.exp2(reference - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            reference = new
        p = tl.exp2(s - reference[:, None])
        total += tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    block = 32
    grid = (triton.cdiv(seq, block) * batch * heads,)
    attention_kernel[grid](
        q, k, v, out, seq, dim, math.log2(math.e) / math.sqrt(dim),
        SLACK=SLACK, BLOCK_M=block, BLOCK_N=block, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )
    return out
