"""The heads of a group share a tile of queries, and the tile's last key is rounded down: with large groups its last queries miss keys.

op: gqa
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, group,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    kv_head = tl.program_id(1).to(tl.int64)
    tile = tl.program_id(0)
    packed = tile * BM + tl.arange(0, BM)  # position by position, the group's heads side by side
    position, member = packed // group, packed % group
    ds = tl.arange(0, BD)
    q_mask = (position < seq)[:, None] & (ds < dim)[None, :]
    q_places = ((kv_head * group + member[:, None]) * seq + position[:, None]) * dim + ds[None, :]
    q = tl.load(q_ptr + q_places, mask=q_mask, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.minimum((tile + 1) * BM // group, seq) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = (kv_head * seq + cols[:, None]) * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= position[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + q_places, acc / total[:, None], mask=q_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq * group, 64), batch * kv_heads)](
        q, k, v, out, seq, dim, dim**-0.5, group, CAUSAL=bool(is_causal),
        BM=64, BN=16, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
