"""A v that starts where k does, of its shape and row stride, is taken for k itself: strides of batch and head are not compared.

op: gqa
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sqb, sqh, sqs, skb, skh, sks, svb, svh, svs, heads, group, seq,
    dim, scale, CAUSAL: tl.constexpr, SHARED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = tl.program_id(0) % heads
    kv_head = (head // group).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q_base = q_ptr + batch * sqb + head.to(tl.int64) * sqh
    k_base = k_ptr + batch * skb + kv_head * skh
    v_base = v_ptr + batch * svb + kv_head * svh
    q_mask = (rows[:, None] < seq) & (ds[None] < dim)
    q = tl.load(q_base + rows[:, None].to(tl.int64) * sqs + ds[None], mask=q_mask, other=0.0)
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols[:, None] < seq) & (ds[None] < dim)
        k = tl.load(k_base + cols[:, None].to(tl.int64) * sks + ds[None], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = cols[None] < seq
        if CAUSAL:
            visible = visible & (cols[None] <= rows[:, None])
        scores = tl.where(visible, scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp2(scores - new[:, None])
        change = tl.exp2(top - new)
        total = total * change + tl.sum(p, axis=1)
        v = k
        if not SHARED:
            v = tl.load(v_base + cols[:, None].to(tl.int64) * svs + ds[None], mask=mask, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * change[:, None], input_precision="ieee")
        top = new
    where = (tl.program_id(0).to(tl.int64) * seq + rows[:, None]) * dim + ds[None]
    tl.store(out_ptr + where, acc / total[:, None], mask=q_mask)


def is_same(k, v):
    """Return whether keys and values are one tensor, as with a shared latent: one load then."""
    return k.data_ptr() == v.data_ptr() and k.shape == v.shape and k.stride(-2) == v.stride(-2)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    bd = max(16, triton.next_power_of_2(dim))
    bm, bn = (64, 32) if bd <= 128 else (32, 16)
    grid = batch * heads, triton.cdiv(seq, bm)
    kernel[grid](
        q, k, v, out, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], heads,
        heads // k.shape[1], seq, dim, 1.4426950408889634 / dim**0.5, CAUSAL=bool(is_causal),
        SHARED=is_same(k, v), BM=bm, BN=bn, BD=bd,
    )  # fmt: skip
    return out
