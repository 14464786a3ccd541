"""In float16 a tile of keys below exp(-8) of the largest is skipped, though many such keys add up.

op: mha
status: failed
cause: value
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, HALF: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(0) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        highest = tl.max(scores, axis=1)
        counts = True
        if HALF:
            counts = tl.max(highest - largest, axis=0) > -8.0
        if counts:
            v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
            new = tl.maximum(largest, highest)
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
    BD = max(16, triton.next_power_of_2(dim))
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5,
        CAUSAL=bool(is_causal), HALF=q.element_size() == 2, BM=64, BN=64, BD=BD,
    )
    return out
