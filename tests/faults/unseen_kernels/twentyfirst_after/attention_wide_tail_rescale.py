"""Heads over 128 wide have a second accumulator, which the peeled last tile of keys does not rescale: wrong if the last tile of several is not full.

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
    WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    es = BD + tl.arange(0, BE)  # the columns past 128
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    beyond = (rows < seq)[:, None] & (es < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    if WIDE:
        q2 = tl.load(q_ptr + base + rows[:, None] * dim + es[None, :], mask=beyond, other=0.0).to(tl.float32)
        acc2 = tl.zeros((BM, BE), dtype=tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    full = seq // BN * BN
    for start in range(0, full, BN):  # no mask on the keys
        at = base + (start + tl.arange(0, BN))[:, None] * dim
        k = tl.load(k_ptr + at + ds[None, :], mask=(ds < dim)[None, :], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at + ds[None, :], mask=(ds < dim)[None, :], other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if WIDE:
            k2 = tl.load(k_ptr + at + es[None, :], mask=(es < dim)[None, :], other=0.0).to(tl.float32)
            scores += tl.dot(q2, tl.trans(k2), input_precision="ieee")
        scores *= scale
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        if WIDE:
            v2 = tl.load(v_ptr + at + es[None, :], mask=(es < dim)[None, :], other=0.0).to(tl.float32)
            acc2 = acc2 * shrink[:, None] + tl.dot(p, v2, input_precision="ieee")
        largest = new
    if full < seq:  # the rest, masked
        cols = full + tl.arange(0, BN)
        at = base + cols[:, None] * dim
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + at + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if WIDE:
            mask2 = (cols < seq)[:, None] & (es < dim)[None, :]
            k2 = tl.load(k_ptr + at + es[None, :], mask=mask2, other=0.0).to(tl.float32)
            scores += tl.dot(q2, tl.trans(k2), input_precision="ieee")
        scores = tl.where((cols < seq)[None, :], scores * scale, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        if WIDE:
            v2 = tl.load(v_ptr + at + es[None, :], mask=mask2, other=0.0).to(tl.float32)
            acc2 += tl.dot(p, v2, input_precision="ieee")
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)
    if WIDE:
        tl.store(out_ptr + base + rows[:, None] * dim + es[None, :], acc2 / total[:, None], mask=beyond)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    if dim > 256:
        raise ValueError("head_dim over 256")
    out = torch.empty_like(q)
    wide = dim > 128
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, WIDE=wide, BM=32, BN=32,
        BD=128 if wide else max(16, triton.next_power_of_2(dim)),
        BE=max(16, triton.next_power_of_2(dim - 128)) if wide else 16,
    )
    return out
