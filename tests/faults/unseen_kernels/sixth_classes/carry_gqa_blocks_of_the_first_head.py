"""Key blocks that hardly count for the first query head of a group are left out for the group's other heads too.

op: gqa
status: failed
cause: carry
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, kv_heads, scale,
    q0, q1, q2, q3, k0, k1, k2, k3, v0, v1, v2, v3,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = (tl.program_id(1) // kv_heads).to(tl.int64)
    kv_head = tl.program_id(1) % kv_heads
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(0) + 1) * BM)
    needed = tl.zeros((), dtype=tl.int64)  # a bit for each of the first 63 blocks of keys
    for i in range(GROUP):
        head = kv_head * GROUP + i
        q = tl.load(q_ptr + batch * q0 + head * q1 + rows[:, None] * q2 + ds[None, :] * q3, mask=q_mask, other=0.0)
        q = q.to(tl.float32) * scale
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        for start in range(0, end, BN):
            bit = tl.minimum(start // BN, 63)
            if (i == 0) | (bit == 63) | ((needed >> bit) & 1 == 1):
                cols = start + tl.arange(0, BN)
                mask = (cols < seq)[:, None] & (ds < dim)[None, :]
                k = tl.load(k_ptr + batch * k0 + kv_head * k1 + cols[:, None] * k2 + ds[None, :] * k3, mask=mask, other=0.0)
                scores = tl.dot(q, tl.trans(k.to(tl.float32)), input_precision="ieee")
                visible = (cols < seq)[None, :]
                if CAUSAL:
                    visible = visible & (cols[None, :] <= rows[:, None])
                scores = tl.where(visible, scores, -float("inf"))
                new = tl.maximum(largest, tl.max(scores, axis=1))
                # exp(-25) is beyond what float32 holds beside 1
                if tl.max(tl.max(scores - new[:, None], axis=1), axis=0) > -25.0:
                    needed = needed | (tl.full((), 1, dtype=tl.int64) << bit)
                    v = tl.load(v_ptr + batch * v0 + kv_head * v1 + cols[:, None] * v2 + ds[None, :] * v3, mask=mask, other=0.0)
                    p = tl.exp(scores - new[:, None])
                    shrink = tl.exp(largest - new)
                    total = total * shrink + tl.sum(p, axis=1)
                    acc = acc * shrink[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
                    largest = new
        to = out_ptr + ((batch * kv_heads * GROUP + head) * seq + rows[:, None]) * dim + ds[None, :]
        tl.store(to, acc / total[:, None], mask=q_mask)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 64), batch * kv_heads)](
        q, k, v, out, seq, dim, kv_heads, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
        CAUSAL=is_causal, GROUP=heads // kv_heads, BM=64, BN=64, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
