"""The heads of a group are rows of one tile; their position is taken as if heads alternated.

op: gqa
status: failed
cause: missing_mask
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, group, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    kv_base = tl.program_id(1).to(tl.int64) * seq * dim
    base = kv_base * group
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    position = rows // group
    ds = tl.arange(0, BD)
    row_mask = (rows < group * seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = kv_base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k), input_precision="ieee") * scale
        seen = (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (cols[None, :] <= position[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    out = acc / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], out, mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    kernel[(triton.cdiv(group * seq, 64), batch * kv_heads)](
        q, k, v, out, group, seq, dim, dim**-0.5,
        CAUSAL=is_causal, BM=64, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
