"""A tile packs the query heads of a group, 32 at most, and no loop takes the others: a group of more than 32 heads is written in part.

op: gqa
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, kv_heads, group, scale,
    CAUSAL: tl.constexpr, PACK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pair = tl.program_id(0)
    lanes = tl.arange(0, BM)
    member = lanes % PACK
    rows = tl.program_id(1) * (BM // PACK) + lanes // PACK
    ds = tl.arange(0, BD)
    head = pair.to(tl.int64) * group + member
    at_q = (head * seq + rows)[:, None] * dim + ds[None, :]
    inside = ((rows < seq) & (member < group))[:, None] & (ds < dim)[None, :]
    base = pair.to(tl.int64) * seq * dim
    q = tl.load(q_ptr + at_q, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + at_q, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    pack = min(32, triton.next_power_of_2(group))
    out = torch.empty_like(q)
    kernel[(batch * kv_heads, triton.cdiv(seq, 32 // pack))](
        q, k, v, out, seq, dim, kv_heads, group, dim**-0.5, CAUSAL=is_causal,
        PACK=pack, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
