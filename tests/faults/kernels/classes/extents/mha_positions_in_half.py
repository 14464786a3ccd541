"""The causal mask compares positions in float16, which is exact to 2,048 only.

op: mha
status: failed
cause: truncated_extent
round: second
"""

import torch
import triton
import triton.language as tl


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
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + head + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, seq) if CAUSAL else seq
    for start in range(0, end, BN):
        keys = start + tl.arange(0, BN)
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        if CAUSAL:
            s = tl.where(
                rows.to(tl.float16)[:, None] >= keys.to(tl.float16)[None, :], s, -float("inf")
            )
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + head + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q,
        k,
        v,
        out,
        seq,
        dim,
        dim**-0.5,
        CAUSAL=is_causal,
        BM=64,
        BN=64,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
