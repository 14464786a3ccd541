"""With one key head, the rows of all query heads share tiles; a causal tile stops at a key as if every head began at a tile's beginning.

op: gqa
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n_rows, seq, dim, group, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    q_base = tl.program_id(1).to(tl.int64) * n_rows * dim
    k_base = (tl.program_id(1) // group).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    places = rows % seq
    ds = tl.arange(0, BD)
    row_mask = (rows < n_rows)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + q_base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        tile = tl.program_id(0) % tl.cdiv(seq, BM)
        end = min(seq, (tile + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + k_base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + k_base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= places[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + q_base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    packed = kv_heads == 1 and heads * seq <= 256
    n_rows, n_heads, group = (heads * seq, 1, 1) if packed else (seq, heads, heads // kv_heads)
    kernel[(triton.cdiv(n_rows, 32), batch * n_heads)](
        q, k, v, out, n_rows, seq, dim, group, dim**-0.5, CAUSAL=is_causal, BM=32, BN=32, BD=BD
    )
    return out
