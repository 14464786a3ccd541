"""The two halves of the keys are joined at the first half's maximum: where the second half's scores lie more than 128 (in powers of two) higher, both sums are infinite.

op: gqa
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def walk(
    q, k_ptr, v_ptr, ks, kd, vs, vd, rows, d, begin, end, seq, head_dim, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        wide = keys.to(tl.int64)[:, None]
        there = (keys[:, None] < seq) & (d[None] < head_dim)
        k = tl.load(k_ptr + wide * ks + d[None] * kd, mask=there, other=0.0)
        v = tl.load(v_ptr + wide * vs + d[None] * vd, mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = keys[None] < seq
        if CAUSAL:
            mask &= keys[None] <= rows[:, None]
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        largest = new
    return largest, total, acc


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, group, seq, head_dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    batch = (tl.program_id(0) // heads).to(tl.int64)
    head = (tl.program_id(0) % heads).to(tl.int64)
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    inside = (rows[:, None] < seq) & (d[None] < head_dim)
    q = tl.load(
        q_ptr + batch * qb + head * qh + rows.to(tl.int64)[:, None] * qs + d[None] * qd, mask=inside, other=0.0
    )
    k_ptr += batch * kb + head // group * kh
    v_ptr += batch * vb + head // group * vh
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    # Two chains that do not wait for each other; every row sees a key of the first one.
    middle = tl.cdiv(tl.cdiv(end, BLOCK_N), 2) * BLOCK_N
    largest, total, acc = walk(
        q, k_ptr, v_ptr, ks, kd, vs, vd, rows, d, 0, middle, seq, head_dim, scale,
        CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    largest_2, total_2, acc_2 = walk(
        q, k_ptr, v_ptr, ks, kd, vs, vd, rows, d, middle, end, seq, head_dim, scale,
        CAUSAL, BLOCK_M, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    factor = tl.exp2(largest_2 - largest)
    acc += acc_2 * factor[:, None]
    total += total_2 * factor
    place = (tl.program_id(0).to(tl.int64) * seq + rows)[:, None] * head_dim + d[None]
    tl.store(out_ptr + place, acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, head_dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    kernel[(batch * heads, triton.cdiv(seq, 64))](
        q, k, v, out, heads, heads // k.shape[1], seq, head_dim, head_dim**-0.5 * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(),
        CAUSAL=bool(is_causal), BLOCK_M=64, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
    )
    return out
