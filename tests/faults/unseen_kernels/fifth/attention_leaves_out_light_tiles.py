"""A tile of keys whose scores are all more than 8 below the running maximum is left out; many such keys together weigh much.

op: attention
status: failed
cause: dropped mass
"""

import torch
import triton
import triton.language as tl

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
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        here = tl.max(scores, axis=1)
        # exp(-8) is below what a half type shows: v need not be read
        if tl.max(tl.where(rows < seq, here - most, -float("inf")), axis=0) > -8.0:
            new = tl.maximum(most, here)
            p = tl.exp(scores - new[:, None])
            shrink = tl.exp(most - new)
            v = tl.load(v_ptr + places, mask=inside, other=0.0)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), input_precision="ieee")
            most = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside_q)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, BM=64, BN=64, BD=BD
    )
    return out
