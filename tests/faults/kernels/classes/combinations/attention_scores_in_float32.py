"""Scores are stored in float32 between two kernels.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(q_ptr, k_ptr, s_ptr, seq, dim, scale, BM: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + base * seq * dim + rows[:, None] * dim + ds[None, :],
                mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    k = tl.load(k_ptr + base * seq * dim + cols[:, None] * dim + ds[None, :],
                mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    mask = (rows < seq)[:, None] & (cols < seq)[None, :]
    tl.store(s_ptr + base * seq * seq + rows[:, None] * seq + cols[None, :], s, mask=mask)


@triton.jit
def value_kernel(s_ptr, v_ptr, out_ptr, seq, dim, BN: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64)
    ds = tl.arange(0, BD)
    largest = tl.full((), -float("inf"), dtype=tl.float32)
    total = tl.full((), 0.0, dtype=tl.float32)
    acc = tl.zeros((BD,), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        s = tl.load(s_ptr + (base * seq + row) * seq + cols, mask=cols < seq, other=-float("inf")).to(tl.float32)
        v = tl.load(v_ptr + (base * seq + cols[:, None]) * dim + ds[None, :],
                    mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
        new = tl.maximum(largest, tl.max(s, axis=0))
        p = tl.exp(s - new)
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=0)
        acc = acc * shrink + tl.sum(p[:, None] * v, axis=0)
        largest = new
    tl.store(out_ptr + (base * seq + row) * dim + ds, acc / total, mask=ds < dim)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    scores = torch.empty((batch * heads, seq, seq), dtype=torch.float32, device=q.device)
    BD, tiles = max(16, triton.next_power_of_2(dim)), triton.cdiv(seq, 32)
    scores_kernel[(tiles, tiles, batch * heads)](q, k, scores, seq, dim, dim**-0.5, BM=32, BD=BD)
    value_kernel[(seq, batch * heads)](scores, v, out, seq, dim, BN=64, BD=BD)
    return out
