"""Batch and head are one axis: the head's stride times their common number.

op: attention
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = tl.program_id(1).to(tl.int64) * 0
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    seen = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + batch * qb + head * qh + rows[:, None] * qs + ds[None, :] * qd,
                mask=seen, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + batch * kb + head * kh + cols[:, None] * ks + ds[None, :] * kd,
                    mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + batch * vb + head * vh + cols[:, None] * vs + ds[None, :] * vd,
                    mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    base = tl.program_id(1).to(tl.int64) * seq * dim
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=seen)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
