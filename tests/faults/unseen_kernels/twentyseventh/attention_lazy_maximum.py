"""The maximum follows only growth by more than 2**24, but weights are stored in float16, which ends at 2**16.

op: attention
status: failed
cause: range
"""

import math

import torch
import triton
import triton.language as tl

LAZY = tl.constexpr(24.0)  # in powers of two: the float32 sums have room for that


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, tiles, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = (tl.program_id(0) // tiles).to(tl.int64) * seq * dim
    rows = (tl.program_id(0) % tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = head + rows.to(tl.int64)[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        at = head + keys.to(tl.int64)[:, None] * dim + ds[None, :]
        visible = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at, mask=visible, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        peak = tl.max(s, axis=1)
        grown = peak > largest + LAZY
        if tl.max(grown.to(tl.int32), axis=0) > 0:  # seldom after the first tile
            new = tl.where(grown, peak, largest)
            shrink = tl.exp2(largest - new)
            total *= shrink
            acc *= shrink[:, None]
            largest = new
        p = tl.exp2(s - largest[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptr + at, mask=visible, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, dim = q.shape
    if out.numel():
        tiles = triton.cdiv(seq, 64)
        kernel[(batch * heads * tiles,)](
            q, k, v, out, seq, dim, tiles, math.log2(math.e) / math.sqrt(dim),
            BLOCK_M=64, BLOCK_N=64, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
