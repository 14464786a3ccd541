"""The running maximum is kept in float16, which any reference of about that size allows: scores past 65504 make it infinite.

op: mha
status: failed
cause: precision
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sqb, sqh, sqs, skb, skh, sks, svb, svh, svs, heads, seq, dim,
    scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    k_base = k_ptr + batch * skb + head * skh
    v_base = v_ptr + batch * svb + head * svh
    q_mask = (rows[:, None] < seq) & (ds[None] < dim)
    q_where = q_ptr + batch * sqb + head * sqh + rows[:, None].to(tl.int64) * sqs + ds[None]
    q = tl.load(q_where, mask=q_mask, other=0.0)
    # Half the registers: the reference needs few bits, as long as all terms use the same one.
    top = tl.full((BM,), float("-inf"), tl.float16)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols[:, None] < seq) & (ds[None] < dim)
        k = tl.load(k_base + cols[:, None].to(tl.int64) * sks + ds[None], mask=mask, other=0.0)
        v = tl.load(v_base + cols[:, None].to(tl.int64) * svs + ds[None], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = cols[None] < seq
        if CAUSAL:
            mask = mask & (cols[None] <= rows[:, None])
        scores = tl.where(mask, scores, float("-inf"))
        new = tl.maximum(top.to(tl.float32), tl.max(scores, axis=1)).to(tl.float16)
        p = tl.exp2(scores - new[:, None].to(tl.float32))
        change = tl.exp2(top.to(tl.float32) - new.to(tl.float32))
        total = total * change + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * change[:, None], input_precision="ieee")
        top = new
    where = (tl.program_id(0).to(tl.int64) * seq + rows[:, None]) * dim + ds[None]
    tl.store(out_ptr + where, acc / total[:, None], mask=q_mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    bd = max(16, triton.next_power_of_2(dim))
    bm, bn = (64, 32) if bd <= 128 else (32, 16)
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], heads, seq, dim,
        1.4426950408889634 / dim**0.5, CAUSAL=bool(is_causal), BM=bm, BN=bn, BD=bd,
    )  # fmt: skip
    return out
