"""The last position of a tile of packed heads is rounded down: with 48 heads a group the position 16 misses its own key.

op: gqa
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, group, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    # The queries of a group are packed, position by position: a tile of keys serves all its heads.
    kv_base = tl.program_id(0).to(tl.int64) * seq * dim
    first = tl.program_id(1) * BM
    rows = first + tl.arange(0, BM)
    position = rows // group
    head = rows % group
    ds = tl.arange(0, BD)
    inside = (position < seq)[:, None] & (ds < dim)[None, :]
    at_rows = kv_base * group + (head * seq + position)[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + at_rows, mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, tl.maximum((first + BM) // group, 1))
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv_base + cols[:, None] * dim + ds[None, :]
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
    tl.store(out_ptr + at_rows, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    group = heads // kv_heads
    out = torch.empty_like(q)
    kernel[(batch * kv_heads, triton.cdiv(group * seq, 32))](
        q, k, v, out, seq, dim, group, dim**-0.5, CAUSAL=is_causal,
        BM=32, BN=16, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
