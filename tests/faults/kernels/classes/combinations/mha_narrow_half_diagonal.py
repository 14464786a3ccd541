"""For narrow heads of half types a tile of keys reaches past the diagonal without a mask.

op: mha
status: failed
cause: missing_mask
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(
    q,
    k_ptr,
    v_ptr,
    start,
    rows,
    ds,
    seq,
    dim,
    scale,
    largest,
    total,
    acc,
    CAUSAL: tl.constexpr,
    BN: tl.constexpr,
):
    keys = start + tl.arange(0, BN)
    inside = (keys < seq)[:, None] & (ds < dim)[None, :]
    places = keys[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + places, mask=inside, other=0.0)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    seen = (keys < seq)[None, :]
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None])
    s = tl.where(seen, s, -float("inf"))
    new = tl.maximum(largest, tl.max(s, axis=1))
    p = tl.exp(s - new[:, None])
    shrink = tl.exp(largest - new)
    v = tl.load(v_ptr + places, mask=inside, other=0.0)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
    return new, total * shrink + tl.sum(p, axis=1), acc


@triton.jit
def kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    seq,
    dim,
    scale,
    CAUSAL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    first = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * seq * dim
    rows, ds = first + tl.arange(0, BM), tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + head + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    whole = first if CAUSAL else 0
    end = tl.minimum(first + BM, seq) if CAUSAL else seq
    for start in range(0, whole, BN):
        largest, total, acc = tile(
            q,
            k_ptr + head,
            v_ptr + head,
            start,
            rows,
            ds,
            seq,
            dim,
            scale,
            largest,
            total,
            acc,
            False,
            BN,
        )
    for start in range(tl.cdiv(whole, BN) * BN, end, BN):
        largest, total, acc = tile(
            q,
            k_ptr + head,
            v_ptr + head,
            start,
            rows,
            ds,
            seq,
            dim,
            scale,
            largest,
            total,
            acc,
            CAUSAL,
            BN,
        )
    out = acc / total[:, None]
    tl.store(out_ptr + head + rows[:, None] * dim + ds[None, :], out, mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    narrow = dim <= 32 and q.dtype != torch.float32
    BM, BN = (32, 64) if narrow else (64, 64)
    kernel[(triton.cdiv(seq, BM), batch * heads)](
        q,
        k,
        v,
        out,
        seq,
        dim,
        dim**-0.5,
        CAUSAL=is_causal,
        BM=BM,
        BN=BN,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
