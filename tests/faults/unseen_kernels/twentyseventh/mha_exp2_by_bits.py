"""2**x is a polynomial and an addition to the exponent bits: below 2**-126 those bits wrap to large negative numbers.

op: mha
status: failed
cause: exponent
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def fast_exp2(x):
    """2**x for x <= 0 on the multipliers: the unit for exponentials is the bottleneck."""
    whole = tl.floor(x + 0.5)
    y = (x - whole) * 0.6931471805599453
    p = 1.0 + y * (1.0 / 7)
    p = 1.0 + y * (1.0 / 6) * p
    p = 1.0 + y * (1.0 / 5) * p
    p = 1.0 + y * (1.0 / 4) * p
    p = 1.0 + y * (1.0 / 3) * p
    p = 1.0 + y * (1.0 / 2) * p
    p = 1.0 + y * p
    bits = p.to(tl.int32, bitcast=True) + (whole.to(tl.int32) << 23)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, tiles, scale, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = (tl.program_id(0) // tiles).to(tl.int64) * seq * dim
    tile = tl.program_id(0) % tiles
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = head + rows.to(tl.int64)[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        at = head + keys.to(tl.int64)[:, None] * dim + ds[None, :]
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys < seq)[None, :] & (rows >= 0)[:, None]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        new = tl.maximum(largest, tl.max(tl.where(visible, s, -float("inf")), axis=1))
        p = fast_exp2(tl.where(visible, s - new[:, None], 0.0))
        p = tl.where(visible, p, 0.0)
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + at, mask=there, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, dim = q.shape
    if out.numel():
        tiles = triton.cdiv(seq, 64)
        kernel[(batch * heads * tiles,)](
            q, k, v, out, seq, dim, tiles, math.log2(math.e) / math.sqrt(dim),
            CAUSAL=bool(is_causal), BLOCK_M=64, BLOCK_N=64,
            BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
