"""A cache of transposed keys is read in place, with dim times its length as the pitch of a head: wrong where keys and values share a cache, or only some of its heads are passed.

op: attention
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, group, seq, dim, scale,
    qb, qh, qs, kb, kh, ks, kd, vb, vh, vs,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    q_ptr += batch * qb + head * qh
    k_ptr += batch * kb + head // group * kh
    v_ptr += batch * vb + head // group * vh
    out_ptr += tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + rows[:, None] * qs + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None] * ks + ds[None, :] * kd, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + cols[:, None] * vs + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    q, v = q.contiguous(), v.contiguous()
    if k.stride(2) == 1 and k.stride(3) >= seq:
        # a cache of transposed keys, [batch, heads, dim, length]: read it in place
        length = k.stride(3)
        k_strides = (heads * dim * length, dim * length, 1, length)
    else:
        k = k.contiguous()
        k_strides = k.stride()
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, 1, seq, dim, dim**-0.5, *q.stride()[:3], *k_strides, *v.stride()[:3],
        CAUSAL=False, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
