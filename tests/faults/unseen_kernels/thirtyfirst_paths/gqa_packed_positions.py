"""The path that packs the heads of a group into a tile takes a row's position by a power of two: wrong in the causal mask of other lengths.

op: gqa
status: failed
cause: mask
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def packed(q_ptr, k_ptr, v_ptr, out_ptr, seq, group, d, scale, CAUSAL: tl.constexpr,
           ROWS: tl.constexpr, SEQ: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr):  # fmt: skip
    # A program takes one head of keys: q is [batch * kv_heads, group * seq, d].
    head = tl.program_id(0).to(tl.int64)
    rows = tl.arange(0, ROWS)
    keys = tl.arange(0, KEYS)
    ds = tl.arange(0, D)
    row_mask = (rows < group * seq)[:, None] & (ds < d)[None, :]
    key_mask = (keys < seq)[:, None] & (ds < d)[None, :]
    q_at = head * group * seq * d + rows[:, None] * d + ds[None, :]
    k_at = head * seq * d + keys[:, None] * d + ds[None, :]
    q = tl.load(q_ptr + q_at, mask=row_mask, other=0.0)
    k = tl.load(k_ptr + k_at, mask=key_mask, other=0.0)
    v = tl.load(v_ptr + k_at, mask=key_mask, other=0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    visible = (keys < seq)[None, :]
    if CAUSAL:
        visible = visible & (keys[None, :] <= (rows & (SEQ - 1))[:, None])
    s = tl.where(visible, s, -float("inf"))
    p = tl.exp2(s - tl.max(s, axis=1)[:, None])
    out = tl.dot(p.to(v.dtype), v, input_precision="ieee") / tl.sum(p, axis=1)[:, None]
    tl.store(out_ptr + q_at, out, mask=row_mask)


@triton.jit
def streamed(q_ptr, k_ptr, v_ptr, out_ptr, seq, group, d, scale, CAUSAL: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):  # fmt: skip
    head = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, D)
    row_mask = (rows < seq)[:, None] & (ds < d)[None, :]
    q_at = (head * seq + rows[:, None]) * d + ds[None, :]
    q = tl.load(q_ptr + q_at, mask=row_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    last = seq
    if CAUSAL:
        last = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, last, BN):
        keys = start + tl.arange(0, BN)
        key_mask = (keys < seq)[:, None] & (ds < d)[None, :]
        k_at = (head // group * seq + keys[:, None]) * d + ds[None, :]
        k = tl.load(k_ptr + k_at, mask=key_mask, other=0.0)
        v = tl.load(v_ptr + k_at, mask=key_mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, axis=1)
        out = tl.dot(p.to(v.dtype), v, out * shrink[:, None], input_precision="ieee")
        top = new
    tl.store(out_ptr + q_at, out / total[:, None], mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, d = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    scale = 1.4426950408889634 / math.sqrt(d)
    wide = max(16, triton.next_power_of_2(d))
    if group >= 4 and seq <= 16 and group * seq <= 128 and d in (64, 128):
        packed[(batch * kv_heads,)](
            q, k, v, out, seq, group, d, scale, CAUSAL=bool(is_causal),
            ROWS=max(16, triton.next_power_of_2(group * seq)), SEQ=triton.next_power_of_2(seq),
            KEYS=16, D=wide,
        )  # fmt: skip
        return out
    streamed[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, out, seq, group, d, scale, CAUSAL=bool(is_causal), BM=64, BN=32, D=wide
    )
    return out
