"""Nothing wrong: the mean key of a head is subtracted from its keys, which moves all scores of a query alike; a first launch makes the means.

op: attention
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def mean_kernel(k_ptr, mean_ptr, seq, dim, k_b, k_h, k_s, k_d, heads, BN: tl.constexpr, BD: tl.constexpr):
    bh = tl.program_id(0)
    k_ptr += (bh // heads).to(tl.int64) * k_b + (bh % heads).to(tl.int64) * k_h
    ds = tl.arange(0, BD)
    acc = tl.zeros((BN, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = (start + tl.arange(0, BN)).to(tl.int64)
        k = tl.load(k_ptr + cols[:, None] * k_s + ds[None, :] * k_d, mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0)
        acc += k.to(tl.float32)
    tl.store(mean_ptr + bh * dim + ds, tl.sum(acc, axis=0) / seq, mask=ds < dim)


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, mean_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    ds = tl.arange(0, BD)
    inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside_q, other=0.0)
    q = q.to(tl.float32) * (scale * 1.4426950408889634)
    mean = tl.load(mean_ptr + bh * dim + ds, mask=ds < dim, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = (start + tl.arange(0, BN)).to(tl.int64)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + b * k_b + h * k_h + cols[:, None] * k_s + ds[None, :] * k_d, mask=inside, other=0.0)
        v = tl.load(v_ptr + b * v_b + h * v_h + cols[:, None] * v_s + ds[None, :] * v_d, mask=inside, other=0.0)
        k = k.to(tl.float32) - mean[None, :]
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee")
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(most - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p, v.to(tl.float32), acc * shrink[:, None], input_precision="ieee")
        most = new
    places = (bh.to(tl.int64) * seq + rows[:, None]) * dim + ds[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside_q)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    mean = torch.empty((batch * heads, dim), dtype=torch.float32, device=q.device)
    BD = max(16, triton.next_power_of_2(dim))
    mean_kernel[(batch * heads,)](k, mean, seq, dim, *k.stride(), heads, BN=32, BD=BD)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, mean, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
        BM=32, BN=32, BD=BD,
    )
    return out
