"""Programs are ordered in groups of eight query tiles and the last group's smaller size is forgotten: with 9 to 15 tiles of 64 rows the last ones stay unwritten.

op: gqa
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, all_heads,
    SHARE: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    # Eight query tiles of a head run side by side, on the same keys.
    pid = tl.program_id(0)
    in_group = GROUP * all_heads
    tile = (pid // in_group) * GROUP + pid % GROUP
    head = (pid % in_group) // GROUP
    base = head.to(tl.int64) * seq * dim
    kv = (head // SHARE).to(tl.int64) * seq * dim
    rows = tile * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = min(seq, (tile + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv + cols[:, None] * dim + ds[None, :]
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
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    tiles = triton.cdiv(seq, 64)
    kernel[(batch * heads * tiles,)](
        q, k, v, out, seq, dim, dim**-0.5, batch * heads, SHARE=heads // k.shape[1],
        CAUSAL=bool(is_causal), GROUP=min(8, tiles), BM=64, BN=64,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
