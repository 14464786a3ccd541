"""v is taken to be k where both start at one address and have one shape: v may be k's transposed view, or k an expanded head of v.

op: attention
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, head_dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    SAME: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    inside = (rows[:, None] < seq) & (d[None] < head_dim)
    q = tl.load(
        q_ptr + batch * qb + head * qh + rows.to(tl.int64)[:, None] * qs + d[None] * qd, mask=inside, other=0.0
    )
    k_ptr += batch * kb + head * kh
    v_ptr += batch * vb + head * vh
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        there = (keys[:, None] < seq) & (d[None] < head_dim)
        wide = keys.to(tl.int64)[:, None]
        k = tl.load(k_ptr + wide * ks + d[None] * kd, mask=there, other=0.0)
        if SAME:  # one latent serves as key and value: read it once
            v = k
        else:
            v = tl.load(v_ptr + wide * vs + d[None] * vd, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(keys[None] < seq, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        largest = new
    place = (tl.program_id(1).to(tl.int64) * seq + rows)[:, None] * head_dim + d[None]
    tl.store(out_ptr + place, acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    batch, heads, seq, head_dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    same = k.data_ptr() == v.data_ptr() and k.shape == v.shape
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q, k, v, out, heads, seq, head_dim, head_dim**-0.5 * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(),
        SAME=same, BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
    )
    return out
