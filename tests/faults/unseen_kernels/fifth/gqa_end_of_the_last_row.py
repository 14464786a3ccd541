"""The heads of a group follow each other as rows; with the mask the keys end at the last row's place, which is small if a tile goes over into the next head.

op: gqa
status: failed
cause: loop end
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, group, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    kv_head = tl.program_id(1).to(tl.int64)
    first, n_rows = tl.program_id(0) * BM, group * seq
    rows = first + tl.arange(0, BM)  # head by head
    place = rows % seq
    ds = tl.arange(0, BD)
    inside_q = (rows < n_rows)[:, None] & (ds < dim)[None, :]
    at = (kv_head * n_rows + rows[:, None]) * dim + ds[None, :]
    q = tl.load(q_ptr + at, mask=inside_q, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = (tl.minimum(first + BM, n_rows) - 1) % seq + 1
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = (kv_head * seq + cols[:, None]) * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        v = tl.load(v_ptr + places, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= place[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), acc * shrink[:, None], input_precision="ieee")
        most = new
    tl.store(out_ptr + at, acc / total[:, None], mask=inside_q)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(group * seq, 32), batch * kv_heads)](
        q, k, v, out, group, seq, dim, dim**-0.5, CAUSAL=bool(is_causal), BM=32, BN=32, BD=BD
    )
    return out
