"""The keys past the end are masked in the causal branch alone.

op: mha
status: failed
cause: missing_mask
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
    first = tl.program_id(0) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :],
                mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.minimum(seq, first + BM) if CAUSAL else seq
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        if CAUSAL:
            seen = (cols[None, :] <= rows[:, None]) & (cols < seq)[None, :]
            scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal, BM=32, BN=32, BD=BD
    )
    return out
