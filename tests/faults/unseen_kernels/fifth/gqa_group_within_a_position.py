"""Nothing wrong: rows of a tile are the heads of a group at one position, then those at the next; every tensor is read by its strides.

op: gqa
status: passed
cause: none
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, kv_heads, group, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    n_tiles = tl.cdiv(group * seq, BM)
    pid = tl.program_id(0)
    tile = pid % n_tiles
    b = (pid // n_tiles // kv_heads).to(tl.int64)
    kv_head = (pid // n_tiles % kv_heads).to(tl.int64)
    rows = tile * BM + tl.arange(0, BM)
    place, member = rows // group, rows % group
    head = kv_head * group + member
    ds = tl.arange(0, BD)
    inside_q = (place < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(
        q_ptr + b * q_b + (head * q_h + place.to(tl.int64) * q_s)[:, None] + ds[None, :] * q_d,
        mask=inside_q, other=0.0,
    )
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile * BM + BM - 1) // group + 1)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + b * k_b + kv_head * k_h + cols[:, None] * k_s + ds[None, :] * k_d, mask=inside, other=0.0)
        v = tl.load(v_ptr + b * v_b + kv_head * v_h + cols[:, None] * v_s + ds[None, :] * v_d, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= place[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p, v.to(tl.float32), acc * shrink[:, None], input_precision="ieee")
        most = new
    at = ((b * kv_heads * group + head) * seq + place)[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside_q)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(group * seq, 32) * batch * kv_heads,)](
        q, k, v, out, kv_heads, group, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
        CAUSAL=bool(is_causal), BM=32, BN=32, BD=BD,
    )
    return out
