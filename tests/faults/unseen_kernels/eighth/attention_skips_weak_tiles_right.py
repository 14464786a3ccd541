"""A tile of keys is skipped only where float32's exp of all its scores is zero.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :],
                mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        here = tl.max(scores, axis=1)
        ahead = tl.max(tl.where(rows < seq, here - largest, -float("inf")), axis=0)
        if ahead > -110.0:
            new = tl.maximum(largest, here)
            p = tl.exp(scores - new[:, None])
            shrink = tl.exp(largest - new)
            v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
            largest = new
    mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim))
    )
    return out
