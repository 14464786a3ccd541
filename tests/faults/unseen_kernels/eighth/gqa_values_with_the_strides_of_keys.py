"""k and v, both from one cache, share k's strides; wrong where v lies otherwise in memory than k.

op: gqa
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, group, seq, dim, scale,
    qb, qh, qs, kb, kh, ks,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    q_base = batch.to(tl.int64) * qb + head * qh
    kv_base = batch.to(tl.int64) * kb + (head // group) * kh
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + q_base + rows[:, None] * qs + ds[None, :], mask=row_mask, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(0) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        places = kv_base + cols[:, None] * ks + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    out_base = tl.program_id(1).to(tl.int64) * seq * dim
    tl.store(out_ptr + out_base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, heads // k.shape[1], seq, dim, dim**-0.5, *q.stride()[:3], *k.stride()[:3],
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
