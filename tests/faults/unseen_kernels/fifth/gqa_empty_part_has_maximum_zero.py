"""A part of the keys that a query may not see reports 0 as its maximum; where all scores are far below 0 the parts that are is_visible get weight zero.

op: gqa
status: failed
cause: empty part
"""

import torch
import triton
import triton.language as tl
PART = 64


@triton.jit
def parts_kernel(
    q_ptr, k_ptr, v_ptr, acc_ptr, most_ptr, total_ptr, heads, group, seq, dim, scale, n_parts,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, PART: tl.constexpr,
):
    bh, part = tl.program_id(1), tl.program_id(2)
    base = bh.to(tl.int64) * seq * dim
    kv_base = (bh // group).to(tl.int64) * seq * dim  # heads is a multiple of group
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside_q, other=0.0)
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(part * PART, tl.minimum(part * PART + PART, seq), BN):
        cols = start + tl.arange(0, BN)
        inside = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = kv_base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=inside, other=0.0)
        v = tl.load(v_ptr + places, mask=inside, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(is_visible, scores, -float("inf"))
        new = tl.maximum(most, tl.max(scores, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)  # -inf - -inf would be NaN
        p = tl.exp(scores - safe[:, None])
        shrink = tl.exp(most - safe)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        most = new
    most = tl.where(total > 0.0, most, 0.0)
    at = (bh.to(tl.int64) * n_parts + part) * seq + rows
    tl.store(most_ptr + at, most, mask=rows < seq)
    tl.store(total_ptr + at, total, mask=rows < seq)
    tl.store(acc_ptr + at[:, None] * dim + ds[None, :], acc, mask=inside_q)


@triton.jit
def join_kernel(
    acc_ptr, most_ptr, total_ptr, out_ptr, seq, dim, n_parts, PARTS: tl.constexpr, BD: tl.constexpr
):
    row, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    parts, ds = tl.arange(0, PARTS), tl.arange(0, BD)
    at = (bh * n_parts + parts) * seq + row
    inside = parts < n_parts
    mosts = tl.load(most_ptr + at, mask=inside, other=-float("inf"))
    weights = tl.exp(mosts - tl.max(mosts, axis=0))
    total = tl.sum(weights * tl.load(total_ptr + at, mask=inside, other=0.0), axis=0)
    acc = tl.load(acc_ptr + at[:, None] * dim + ds[None, :], mask=inside[:, None] & (ds < dim)[None, :], other=0.0)
    out = tl.sum(acc * weights[:, None], axis=0) / total
    tl.store(out_ptr + (bh * seq + row) * dim + ds, out, mask=ds < dim)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    n_parts = triton.cdiv(seq, PART)
    options = {"dtype": torch.float32, "device": q.device}
    acc = torch.empty((batch * heads, n_parts, seq, dim), **options)
    most, total = (torch.empty((batch * heads, n_parts, seq), **options) for _ in range(2))
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    parts_kernel[(triton.cdiv(seq, 32), batch * heads, n_parts)](
        q, k, v, acc, most, total, heads, heads // k.shape[1], seq, dim, dim**-0.5, n_parts,
        CAUSAL=bool(is_causal), BM=32, BN=32, BD=BD, PART=PART,
    )
    join_kernel[(seq, batch * heads)](
        acc, most, total, out, seq, dim, n_parts, PARTS=triton.next_power_of_2(n_parts), BD=BD
    )
    return out
