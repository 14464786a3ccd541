"""Keys are split over programs, whose sums of weights times v go to memory in q's dtype, before they are divided: in float16 a sum over hundreds of like keys overflows where the average of v does not.

op: attention
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(q_ptr, k_ptr, v_ptr, acc_ptr, top_ptr, sum_ptr, heads, seq, scale, n_parts, sqb, sqh, sqs, sqd,
                skb, skh, sks, skd, svb, svh, svs, svd, D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr,
                BN: tl.constexpr, PART: tl.constexpr):
    pid, part = tl.program_id(0), tl.program_id(2)
    b, h = (pid // heads).to(tl.int64), (pid % heads).to(tl.int64)
    rows = tl.program_id(1).to(tl.int64) * BM + tl.arange(0, BM)
    dims = tl.arange(0, BD)
    row_mask = (rows[:, None] < seq) & (dims[None, :] < D)
    q = tl.load(q_ptr + b * sqb + h * sqh + rows[:, None] * sqs + dims[None, :] * sqd, mask=row_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(part * PART, tl.minimum(seq, (part + 1) * PART), BN):
        keys = (start + tl.arange(0, BN)).to(tl.int64)
        mask = (keys[:, None] < seq) & (dims[None, :] < D)
        k = tl.load(k_ptr + b * skb + h * skh + keys[:, None] * sks + dims[None, :] * skd, mask=mask, other=0.0)
        v = tl.load(v_ptr + b * svb + h * svh + keys[:, None] * svs + dims[None, :] * svd, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        old = tl.exp(top - new)
        total = total * old + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
        top = new
    at = (pid.to(tl.int64) * n_parts + part) * seq + rows
    tl.store(top_ptr + at, top, mask=rows < seq)
    tl.store(sum_ptr + at, total, mask=rows < seq)
    # Half the traffic: the result is rounded to this type anyway.
    tl.store(acc_ptr + at[:, None] * D + dims[None, :], acc.to(acc_ptr.dtype.element_ty), mask=row_mask)


@triton.jit
def join(acc_ptr, top_ptr, sum_ptr, out_ptr, seq, n_parts, D: tl.constexpr, BD: tl.constexpr, BM: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1).to(tl.int64) * BM + tl.arange(0, BM)
    dims = tl.arange(0, BD)
    mask = (rows[:, None] < seq) & (dims[None, :] < D)
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for part in range(n_parts):
        at = (pid * n_parts + part) * seq + rows
        its_top = tl.load(top_ptr + at, mask=rows < seq, other=0.0)
        new = tl.maximum(top, its_top)
        old, weight = tl.exp(top - new), tl.exp(its_top - new)
        total = total * old + weight * tl.load(sum_ptr + at, mask=rows < seq, other=1.0)
        its = tl.load(acc_ptr + at[:, None] * D + dims[None, :], mask=mask, other=0.0).to(tl.float32)
        acc = acc * old[:, None] + its * weight[:, None]
        top = new
    tl.store(out_ptr + (pid * seq + rows)[:, None] * D + dims[None, :], acc / total[:, None], mask=mask)


def triton_attention(q, k, v):
    batch, heads, seq, d = q.shape
    out = torch.empty((batch, heads, seq, d), dtype=q.dtype, device=q.device)
    part = 512
    n_parts = triton.cdiv(seq, part)
    acc = torch.empty((batch * heads, n_parts, seq, d), dtype=q.dtype, device=q.device)
    top = torch.empty((batch * heads, n_parts, seq), dtype=torch.float32, device=q.device)
    total = torch.empty_like(top)
    bd = max(16, triton.next_power_of_2(d))
    blocks = triton.cdiv(seq, 32)
    part_kernel[(batch * heads, blocks, n_parts)](
        q, k, v, acc, top, total, heads, seq, d**-0.5, n_parts, *q.stride(), *k.stride(), *v.stride(),
        D=d, BD=bd, BM=32, BN=32, PART=part,
    )
    join[(batch * heads, blocks)](acc, top, total, out, seq, n_parts, D=d, BD=bd, BM=32)
    return out
