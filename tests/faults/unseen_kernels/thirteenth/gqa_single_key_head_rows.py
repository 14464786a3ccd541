"""With one head of keys the queries of all heads are one block of rows, and a causal tile ends at its last row's position: too early where a tile of 64 rows begins in one head and ends in the next.

op: gqa
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, rows_each, seq, dim, share, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    block = tl.program_id(0)
    base = block.to(tl.int64) * rows_each * dim
    kv = (block // share).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    position = rows % seq
    ds = tl.arange(0, BD)
    inside = (rows < rows_each)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        last = tl.minimum((tl.program_id(1) + 1) * BM, rows_each) - 1
        end = last % seq + 1
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = kv + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= position[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        origin = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp(scores - origin[:, None])
        shrink = tl.exp(largest - origin)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    if kv_heads == 1 and seq % 32 == 0:
        # All heads share the keys: their queries are the rows of one long block.
        blocks, rows_each, share = batch, heads * seq, 1
    else:
        blocks, rows_each, share = batch * heads, seq, heads // kv_heads
    out = torch.empty_like(q)
    kernel[(blocks, triton.cdiv(rows_each, 64))](
        q, k, v, out, rows_each, seq, dim, share, dim**-0.5,
        CAUSAL=is_causal, BM=64, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
