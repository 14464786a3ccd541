"""Looks as if batch and head were merged without regard to strides: it copies where one stride can't serve both.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, qh, qs, qd, kh, ks, kd, vh, vs, vd,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    rows = (tl.program_id(1) * BM + tl.arange(0, BM)).to(tl.int64)
    ds = tl.arange(0, BD)[None, :]
    q_mask = (rows < seq)[:, None] & (ds < dim)
    q = tl.load(q_ptr + head * qh + rows[:, None] * qs + ds * qd, mask=q_mask, other=0.0)
    q = q.to(tl.float32) * scale
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        mask = (cols < seq)[:, None] & (ds < dim)
        k = tl.load(k_ptr + head * kh + cols[:, None] * ks + ds * kd, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + head * vh + cols[:, None] * vs + ds * vd, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    to = out_ptr + (head * seq + rows[:, None]) * dim + ds
    tl.store(to, acc / total[:, None], mask=q_mask)


def heads_in_a_row(x):
    """Return x, copied if need be, and the distance from a head to the next, over batches too."""
    batch, heads = x.shape[:2]
    if heads == 1:
        return x, x.stride(0)
    if batch > 1 and x.stride(0) != heads * x.stride(1):
        x = x.contiguous()
    return x, x.stride(1)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    q, qh = heads_in_a_row(q)
    k, kh = heads_in_a_row(k)
    v, vh = heads_in_a_row(v)
    kernel[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, out, seq, dim, dim**-0.5,
        qh, q.stride(2), q.stride(3), kh, k.stride(2), k.stride(3), vh, v.stride(2), v.stride(3),
        BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
