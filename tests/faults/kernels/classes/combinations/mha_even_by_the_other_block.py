"""The mask of the keys is left out where the length is a multiple of the block of the queries.

op: mha
status: failed
cause: missing_mask
round: third
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k), input_precision="ieee") * scale
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


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal, EVEN=seq % 32 == 0, BM=32, BN=64,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
