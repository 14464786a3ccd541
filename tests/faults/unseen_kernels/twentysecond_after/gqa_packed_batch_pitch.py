"""Heads of a packed projection are read in place, with a batch pitch of seq times the pitch of a token: wrong for the prefix of a longer packed buffer with more than one batch.

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


def is_packed(x, token):
    """Return whether the heads of a token lie side by side and tokens have the pitch `token`."""
    return x.stride(3) == 1 and x.stride(1) == x.shape[3] and x.stride(2) == token


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    token = q.stride(2)
    if token >= heads * dim and all(is_packed(x, token) for x in (q, k, v)):
        strides = (seq * token, dim, token, seq * token, dim, token, 1, seq * token, dim, token)
    else:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        strides = (*q.stride()[:3], *k.stride(), *v.stride()[:3])
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, heads // kv_heads, seq, dim, dim**-0.5, *strides,
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
