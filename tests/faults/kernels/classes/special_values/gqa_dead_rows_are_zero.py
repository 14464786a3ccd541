"""A weight of exactly one is taken for a row without keys, whose output is set to zero.

op: gqa
status: failed
cause: wrong_formula
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pair = tl.program_id(1).to(tl.int64)
    batch, head = pair // heads, pair % heads
    kv = head // (heads // kv_heads)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + batch * qb + head * qh + rows[:, None] * qs + ds[None, :] * qd,
                mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + batch * kb + kv * kh + cols[:, None] * ks + ds[None, :] * kd, mask=mask, other=0.0)
        v = tl.load(v_ptr + batch * vb + kv * vh + cols[:, None] * vs + ds[None, :] * vd, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        seen = (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        largest = new
    places = (pair * seq + rows[:, None]) * dim + ds[None, :]
    out = tl.where(total[:, None] > 1.0, acc / total[:, None], 0.0)
    tl.store(out_ptr + places, out, mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, k.shape[1], seq, dim, dim**-0.5,
        *q.stride(), *k.stride(), *v.stride(),
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
