"""Scores are in base two, but the earlier blocks shrink by a power of e.

op: attention
status: failed
cause: missing_rescale
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    out = acc / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], out, mask=row_mask)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, seq, dim, 1.4426950408889634 * dim**-0.5,
        BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
