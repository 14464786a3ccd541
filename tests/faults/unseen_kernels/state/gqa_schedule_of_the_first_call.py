"""A table holds how many keys each tile of queries visits, by length: with the mask or without it.

op: gqa
status: failed
cause: stale_state
"""

import torch
import triton
import triton.language as tl

BM, BN = 32, 32
_schedules = {}


@triton.jit
def gqa_kernel(
    q_ptr, k_ptr, v_ptr, visits_ptr, out_ptr, heads, kv_heads, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    b, h = tl.program_id(1) // heads, tl.program_id(1) % heads
    base = tl.program_id(1).to(tl.int64) * seq * dim
    kv_base = (b * kv_heads + h // (heads // kv_heads)).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    q = q.to(tl.float32) * scale
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    visits = tl.load(visits_ptr + tl.program_id(0))
    for start in range(0, visits, BN):
        cols = start + tl.arange(0, BN)
        places = kv_base + cols[:, None] * dim + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    places = base + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def _schedule(seq, is_causal, device):
    if (seq, device) not in _schedules:
        ends = range(BM, seq + BM, BM)
        visits = [min(end, seq) if is_causal else seq for end in ends]
        _schedules[seq, device] = torch.tensor(visits, dtype=torch.int32, device=device)
    return _schedules[seq, device]


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    gqa_kernel[(triton.cdiv(seq, BM), batch * heads)](
        q, k, v, _schedule(seq, is_causal, q.device), out, heads, k.shape[1], seq, dim, dim**-0.5,
        CAUSAL=is_causal, BM=BM, BN=BN, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
