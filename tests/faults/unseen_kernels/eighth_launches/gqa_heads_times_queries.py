"""Short sequences: the heads of a group form one tile of at most 128 rows, while 16 heads of 16 queries are 256.

op: gqa
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, n_keys, dim, scale, n_rows,
    HEADS: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    """HEADS: the rows are those of all heads of a group, else those of one head."""
    if HEADS:
        kv = tl.program_id(0).to(tl.int64)
        q_base = kv * n_rows * dim
    else:
        head = tl.program_id(0).to(tl.int64)
        group = heads // kv_heads
        kv = head // heads * kv_heads + head % heads // group
        q_base = head * n_rows * dim
    base = kv * n_keys * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    positions = rows % seq
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + q_base + rows[:, None] * dim + ds[None, :],
                mask=(rows < n_rows)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, n_keys, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < n_keys)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < n_keys)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= positions[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    mask = (rows < n_rows)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptr + q_base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask)


MOST_HEADS = 16
MOST_QUERIES = 16


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads, n_keys = k.shape[1:3]
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    group = heads // kv_heads
    if 1 < group <= MOST_HEADS and seq <= MOST_QUERIES:
        n_rows = group * seq
        BM = min(128, max(16, triton.next_power_of_2(n_rows)))
        kernel[(batch * kv_heads, 1)](
            q, k, v, out, heads, kv_heads, seq, n_keys, dim, dim**-0.5, n_rows,
            HEADS=True, CAUSAL=is_causal, BM=BM, BN=32, BD=BD
        )
        return out
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, kv_heads, seq, n_keys, dim, dim**-0.5, seq,
        HEADS=False, CAUSAL=is_causal, BM=32, BN=32, BD=BD
    )
    return out
