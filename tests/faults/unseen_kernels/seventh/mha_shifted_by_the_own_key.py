"""Scores are shifted by the query's score with its own key instead of the maximum, and overflow where another key scores much higher.

op: mha
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=row_mask, other=0.0).to(tl.float32) * scale
    own = tl.load(k_ptr + places, mask=row_mask, other=0.0).to(tl.float32)
    # Softmax does not change with a shift, and a query always sees its own key: no running maximum,
    # nothing to rescale in the loop.
    shift = tl.sum(q * own, axis=1)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, seq) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") - shift[:, None]
        is_visible = (cols < seq)[None, :]
        if CAUSAL:
            is_visible = is_visible & (cols[None, :] <= rows[:, None])
        p = tl.where(is_visible, tl.exp(scores), 0.0)
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + places, acc / total[:, None], mask=row_mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=bool(is_causal),
        BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
