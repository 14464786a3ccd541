"""Heads of up to 32 positions share tiles of 64 rows; a head whose length does not divide 64 and that begins in one tile ends in the next, without its keys.

op: attention
status: failed
cause: straddled tile
"""

import torch
import triton
import triton.language as tl

@triton.jit
def packed_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n_rows, seq, dim, scale, BM: tl.constexpr, BD: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < n_rows)[:, None] & (ds < dim)[None, :]
    places = rows[:, None].to(tl.int64) * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    k = tl.load(k_ptr + places, mask=inside, other=0.0)
    v = tl.load(v_ptr + places, mask=inside, other=0.0)
    head = rows // seq
    scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
    scores = tl.where(head[:, None] == head[None, :], scores, -float("inf"))
    p = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    total = tl.sum(p, axis=1)
    out = tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), input_precision="ieee") / total[:, None]
    tl.store(out_ptr + places, out, mask=inside)


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside_q, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        v = tl.load(v_ptr + places, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), input_precision="ieee")
        most = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside_q)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    scale = dim**-0.5
    if seq <= 32:
        n_rows = batch * heads * seq
        packed_kernel[(triton.cdiv(n_rows, 64),)](q, k, v, out, n_rows, seq, dim, scale, BM=64, BD=BD)
    else:
        grid = (triton.cdiv(seq, 32), batch * heads)
        kernel[grid](q, k, v, out, seq, dim, scale, BM=32, BN=32, BD=BD)
    return out
