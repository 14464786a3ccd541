"""Three tile configurations by head_dim and dtype; the causal end comes from the query tile and the mask from the key tile in use.

op: gqa
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, dim, scale,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * seq * dim
    kv = ((pid // heads) * kv_heads + (pid % heads) // (heads // kv_heads)).to(tl.int64) * seq * dim
    tile = tl.program_id(1)
    rows = tile * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        if CAUSAL:
            scores = tl.where(cols[None, :] <= rows[:, None], scores, -float("inf"))
        if not EVEN:
            scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    if dim <= 64:
        bm, bn = 64, 64
    elif dim <= 128:
        bm, bn = (32, 64) if q.element_size() == 2 else (64, 32)
    else:
        bm, bn = (64, 32) if q.element_size() == 2 else (32, 16)
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, heads, k.shape[1], seq, dim, dim**-0.5, CAUSAL=is_causal, EVEN=seq % bn == 0,
        BM=bm, BN=bn, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
