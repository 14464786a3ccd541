"""Keys and values stay in registers while batch * group + kv_head stays the same; with kv_heads = group + 1 the next batch's first head has the same number.

op: gqa
status: failed
cause: carries
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k, rows, cols, seq, scale, CAUSAL: tl.constexpr):
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    mask = (cols < seq)[None, :]
    if CAUSAL:
        mask = mask & (cols[None, :] <= rows[:, None])
    return tl.where(mask, s, -float("inf"))


@triton.jit
def short_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, pieces, heads, kv_heads, seq, dim, scale,
    PER: tl.constexpr, BLOCK: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    """Whole heads: a program takes PER in a row, and loads keys and values once for a group."""
    group = heads // kv_heads
    rows = tl.arange(0, BLOCK)
    ds = tl.arange(0, BLOCK_D)
    places = rows[:, None] * dim + ds[None, :]
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    k = tl.zeros((BLOCK, BLOCK_D), dtype=q_ptr.dtype.element_ty)
    v = tl.zeros((BLOCK, BLOCK_D), dtype=q_ptr.dtype.element_ty)
    loaded = -1
    first = tl.program_id(0) * PER
    for piece in range(first, tl.minimum(first + PER, pieces)):
        b, h = piece // heads, piece % heads
        number = b * group + h // group
        if number != loaded:
            kv = tl.cast(b * kv_heads + h // group, tl.int64) * seq * dim
            k = tl.load(k_ptr + kv + places, mask=inside, other=0.0)
            v = tl.load(v_ptr + kv + places, mask=inside, other=0.0)
            loaded = number
        head = tl.cast(piece, tl.int64) * seq * dim
        q = tl.load(q_ptr + head + places, mask=inside, other=0.0)
        s = scores(q, k, rows, rows, seq, scale, CAUSAL)
        p = tl.exp2(s - tl.max(s, axis=1)[:, None])
        acc = tl.dot(p.to(v.dtype), v, input_precision="ieee")
        tl.store(out_ptr + head + places, acc / tl.sum(p, axis=1)[:, None], mask=inside)


@triton.jit
def long_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, dim, scale,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    piece = tl.program_id(0)
    tiles = tl.cdiv(seq, BLOCK)
    first = piece % tiles * BLOCK
    head = (piece // tiles).to(tl.int64)
    kv = head // heads * kv_heads + head % heads // (heads // kv_heads)
    rows = first + tl.arange(0, BLOCK)
    ds = tl.arange(0, BLOCK_D)
    q_places = (head * seq + rows[:, None]) * dim + ds[None, :]
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + q_places, mask=inside, other=0.0)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, first + BLOCK)
    for start in range(0, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        places = (kv * seq + cols[:, None]) * dim + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0)
        v = tl.load(v_ptr + places, mask=mask, other=0.0)
        s = scores(q, k, rows, cols, seq, scale, CAUSAL)
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + q_places, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    sizes = heads, k.shape[1], seq, dim, 1.4426950408889634 / math.sqrt(dim)
    block_d = max(16, triton.next_power_of_2(dim))
    pieces = batch * heads
    if seq <= 64 and dim <= 128:
        block = max(16, triton.next_power_of_2(seq))
        short_kernel[(triton.cdiv(pieces, 8),)](
            q, k, v, out, pieces, *sizes, PER=8, BLOCK=block, BLOCK_D=block_d, CAUSAL=is_causal
        )
    else:
        block = 64 if block_d <= 128 else 32
        long_kernel[(pieces * triton.cdiv(seq, block),)](
            q, k, v, out, *sizes, BLOCK=block, BLOCK_D=block_d, CAUSAL=is_causal
        )
    return out
