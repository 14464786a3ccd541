"""v is read with the strides of k, as both come from one projection; a v in another layout than k is misread.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, kv_b, kv_h, kv_s, kv_d,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    bh = tl.program_id(1)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    first = tl.program_id(0) * BM
    rows = (first + tl.arange(0, BM)).to(tl.int64)
    ds = tl.arange(0, BD)
    inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside_q, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.minimum(first + BM, seq) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = (start + tl.arange(0, BN)).to(tl.int64)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = b * kv_b + h * kv_h + cols[:, None] * kv_s + ds[None, :] * kv_d
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        v = tl.load(v_ptr + places, mask=inside, other=0.0)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(most - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype).to(tl.float32), v.to(tl.float32), acc * shrink[:, None], input_precision="ieee")
        most = new
    places = (bh.to(tl.int64) * seq + rows[:, None]) * dim + ds[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside_q)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(),
        CAUSAL=bool(is_causal), BM=32, BN=32, BD=BD,
    )
    return out
