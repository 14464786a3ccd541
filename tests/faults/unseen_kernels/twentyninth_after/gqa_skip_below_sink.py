"""A tile whose scores are all 10 or more below the maximum so far is skipped: wrong where many such tiles follow a first key with a high score (a sink).

op: gqa
status: failed
cause: skipped
"""

import math

import torch
import triton
import triton.language as tl

NEGLIGIBLE = tl.constexpr(10.0)  # exp(-10) is below a rounding of float16 and bfloat16


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, d, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64)
    kv_head = head // heads * kv_heads + head % heads // (heads // kv_heads)
    ds = tl.arange(0, BD)
    q_at = head * seq * d + rows[:, None] * d + ds[None, :]
    q_mask = (rows < seq)[:, None] & (ds < d)[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    k_ptr += kv_head * seq * d
    v_ptr += kv_head * seq * d
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    end = tl.minimum(seq, (tl.program_id(0) + 1) * BM) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < d)[None, :]
        k = tl.load(k_ptr + cols[:, None] * d + ds[None, :], mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        highest = tl.max(s, axis=1)
        # no row needs this tile: neither the values are read nor the sums rescaled
        needed = tl.max((highest > peak - NEGLIGIBLE).to(tl.int32), axis=0)
        if needed > 0:
            new = tl.maximum(peak, highest)
            p = tl.exp(s - new[:, None])
            shrink = tl.exp(peak - new)
            v = tl.load(v_ptr + cols[:, None] * d + ds[None, :], mask=mask, other=0.0)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            peak = new
    tl.store(out_ptr + q_at, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=q_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, d = q.shape
    out = torch.empty_like(q)
    if not q.numel():
        return out
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, k.shape[1], seq, d, 1 / math.sqrt(d),
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(d)),
    )
    return out
