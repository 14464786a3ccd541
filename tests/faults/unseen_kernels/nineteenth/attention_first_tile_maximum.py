"""The first tile's maximum serves all tiles unless a row's sum is infinite; in float16 a weight 12 above it is infinite long before the sum.

op: attention
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    TYPE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(TYPE)

    # the first tile's maximum serves for all tiles: nothing is scaled again in the loop
    cols = tl.arange(0, BN)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(TYPE)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    guess = tl.max(tl.where((cols < seq)[None, :], scores, -float("inf")), axis=1)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(TYPE)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(TYPE)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        p = tl.exp(scores - guess[:, None])
        total += tl.sum(p, axis=1)
        acc += tl.dot(p.to(TYPE), v, input_precision="ieee")

    if tl.max(total, axis=0) == float("inf"):  # overflow: once more, with a running maximum
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        for start in range(0, seq, BN):
            cols = start + tl.arange(0, BN)
            mask = (cols < seq)[:, None] & (ds < dim)[None, :]
            k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(TYPE)
            v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(TYPE)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, axis=1))
            p = tl.exp(scores - new[:, None])
            shrink = tl.exp(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            acc = acc * shrink[:, None] + tl.dot(p.to(TYPE), v, input_precision="ieee")
            largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    product = tl.float16 if q.dtype == torch.float16 else tl.float32
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, TYPE=product, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
