"""A group's heads are packed into a tile's rows, and the end of the keys is rounded up.

op: gqa
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, group,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    # the heads of a group are packed into the rows of one tile: row = position * group + head in the group
    kv_head = tl.program_id(0).to(tl.int64)
    packed = tl.program_id(1) * BM + tl.arange(0, BM)
    position = packed // group
    head = kv_head * group + packed % group
    ds = tl.arange(0, BD)
    inside = (position < seq)[:, None] & (ds < dim)[None, :]
    at_q = (head * seq + position)[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + at_q, mask=inside, other=0.0).to(tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, tl.cdiv((tl.program_id(1) + 1) * BM, group))
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv_head * seq * dim + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= position[:, None])
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
    out = torch.empty_like(q)
    kernel[(batch * kv_heads, triton.cdiv(seq * group, 32))](
        q, k, v, out, seq, dim, dim**-0.5, group, CAUSAL=is_causal,
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
