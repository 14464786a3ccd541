"""The running maximum begins at zero, so that rows of very low scores have no weights left.

op: attention
status: failed
cause: missing_maximum
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
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + head + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, seq, BN):
        keys = start + tl.arange(0, BN)
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + head + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = (t.contiguous() for t in (q, k, v))
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
        BM=64,
        BN=32,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
