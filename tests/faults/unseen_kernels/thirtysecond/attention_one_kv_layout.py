"""v is read with the strides of k: wrong where only one of them is contiguous.

op: attention
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    q_base = q_ptr + batch.to(tl.int64) * qb + head.to(tl.int64) * qh
    kv = batch.to(tl.int64) * kb + head.to(tl.int64) * kh  # k and v come out of one projection
    at = (rows[:, None] < seq) & (d[None] < dim)
    q = tl.load(q_base + rows[:, None] * qs + d[None] * qd, mask=at, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        places = kv + keys[:, None] * ks + d[None] * kd
        mask = (keys[:, None] < seq) & (d[None] < dim)
        k = tl.load(k_ptr + places, mask=mask, other=0.0)
        v = tl.load(v_ptr + places, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(keys[None] < seq, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp2(scores - new[:, None])
        old = tl.exp2(top - new)
        total = total * old + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
        top = new
    out = out_ptr + (tl.program_id(1).to(tl.int64) * seq + rows[:, None]) * dim + d[None]
    tl.store(out, acc / total[:, None], mask=at)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if k.shape != v.shape:
        raise ValueError("k and v must have one shape")
    attend[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, heads, seq, dim, 1.4426950408889634 / dim**0.5, *q.stride(), *k.stride(),
        BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )  # fmt: skip
    return out
