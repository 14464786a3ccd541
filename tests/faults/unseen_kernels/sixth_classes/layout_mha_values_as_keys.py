"""The strides of k serve for v too.

op: mha
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale, q0, q1, q2, q3, k0, k1, k2, k3,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = tl.program_id(1) % heads
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + batch * q0 + head * q1 + rows[:, None] * q2 + ds[None, :] * q3, mask=q_mask, other=0.0)
    q = q.to(tl.float32) * scale
    kv_base = batch * k0 + head * k1
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(0) + 1) * BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        kv_at = kv_base + cols[:, None] * k2 + ds[None, :] * k3
        kv_mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    to = out_ptr + (tl.program_id(1).to(tl.int64) * seq + rows[:, None]) * dim + ds[None, :]
    tl.store(to, acc / total[:, None], mask=q_mask)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(),
        CAUSAL=is_causal, BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
