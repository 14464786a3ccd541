"""v is read by the strides of k.

op: gqa
status: failed
cause: wrong_stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, group, seq, dim, scale,
    qb, qh, qs, qd, kb, kh, ks, kd,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    shared = head // group
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    seen = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + batch * qb + head * qh + rows[:, None] * qs + ds[None, :] * qd,
                mask=seen, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + batch * kb + shared * kh + cols[:, None] * ks + ds[None, :] * kd,
                    mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + batch * kb + shared * kh + cols[:, None] * ks + ds[None, :] * kd,
                    mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
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
    base = tl.program_id(1).to(tl.int64) * seq * dim
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=seen)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, heads, heads // k.shape[1], seq, dim, dim**-0.5,
        q.stride(0), q.stride(1), q.stride(2), q.stride(3),
        k.stride(0), k.stride(1), k.stride(2), k.stride(3),
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
