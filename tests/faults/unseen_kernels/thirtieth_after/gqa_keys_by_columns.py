"""Keys whose positions are nearer in memory than their dimensions are read as columns, positions taken as one element apart: wrong for keys expanded over positions, and for those with heads innermost.

op: gqa
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, scale, sqb, sqh, sqs, sqd, skb, skh, sks, skd, svb, svh, svs, svd,
           CAUSAL: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BD: tl.constexpr,
           BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    b, h = (pid // heads).to(tl.int64), (pid % heads).to(tl.int64)
    k_ptr += b * skb + h // GROUP * skh
    v_ptr += b * svb + h // GROUP * svh
    rows = tl.program_id(1).to(tl.int64) * BM + tl.arange(0, BM)
    dims = tl.arange(0, BD)
    row_mask = (rows[:, None] < seq) & (dims[None, :] < D)
    q = tl.load(q_ptr + b * sqb + h * sqh + rows[:, None] * sqs + dims[None, :] * sqd, mask=row_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BM)
    for start in range(0, end, BN):
        keys = (start + tl.arange(0, BN)).to(tl.int64)
        if COLUMNS:
            # A cache of k^T: tiles come as the product needs them, wide loads along the positions.
            k = tl.load(k_ptr + dims[:, None] * skd + keys[None, :], mask=(dims[:, None] < D) & (keys[None, :] < seq),
                        other=0.0)
        else:
            k = tl.load(k_ptr + keys[None, :] * sks + dims[:, None] * skd,
                        mask=(dims[:, None] < D) & (keys[None, :] < seq), other=0.0)
        v = tl.load(v_ptr + keys[:, None] * svs + dims[None, :] * svd,
                    mask=(keys[:, None] < seq) & (dims[None, :] < D), other=0.0)
        scores = tl.dot(q, k, input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
        top = new
    out = out_ptr + (pid.to(tl.int64) * seq + rows)[:, None] * D + dims[None, :]
    tl.store(out, acc / total[:, None], mask=row_mask)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, d = q.shape
    out = torch.empty((batch, heads, seq, d), dtype=q.dtype, device=q.device)
    columns = seq > 1 and d > 1 and k.stride(2) < k.stride(3)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, heads, seq, d**-0.5, *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal),
        COLUMNS=columns, GROUP=heads // k.shape[1], D=d, BD=max(16, triton.next_power_of_2(d)), BM=32, BN=32,
    )
    return out
