"""Scores are shifted by |q| times the longest key, a bound, not by their maximum: exp may be 0 all.

op: attention
status: failed
cause: underflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def longest_key_kernel(k_ptr, longest_ptr, seq, dim, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    ds = tl.arange(0, BD)
    longest = tl.zeros((BN,), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0)
        k = k.to(tl.float32)
        longest = tl.maximum(longest, tl.sum(k * k, axis=1))
    tl.store(longest_ptr + tl.program_id(0), tl.sqrt(tl.max(longest, axis=0)))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, longest_ptr, out_ptr, seq, dim, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0).to(tl.float32) * scale
    # |q . k| <= |q| |k|: no running maximum, and nothing is rescaled
    bound = tl.sqrt(tl.sum(q * q, axis=1)) * tl.load(longest_ptr + tl.program_id(1))
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        kv = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + kv, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + kv, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        p = tl.where((cols < seq)[None, :], tl.exp(scores - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    longest = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
    BD = max(16, triton.next_power_of_2(dim))
    longest_key_kernel[(batch * heads,)](k, longest, seq, dim, BN=64, BD=BD)
    attention_kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, longest, out, seq, dim, dim**-0.5, BM=32, BN=64, BD=BD
    )
    return out
