"""Even and odd keys have states of their own, which are joined at the end; a state that has had no key counts as nothing.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def step(q, k_ptr, v_ptr, base, cols, largest, total, acc, seq, dim, scale, BD: tl.constexpr):
    ds = tl.arange(0, BD)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    at = base + cols[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, axis=1))
    shift = tl.where(new == -float("inf"), 0.0, new)
    p = tl.exp(scores - shift[:, None])
    shrink = tl.exp(largest - shift)
    return new, total * shrink + tl.sum(p, axis=1), acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    top0 = tl.full((BM,), -float("inf"), dtype=tl.float32)
    top1 = tl.full((BM,), -float("inf"), dtype=tl.float32)
    sum0 = tl.zeros((BM,), dtype=tl.float32)
    sum1 = tl.zeros((BM,), dtype=tl.float32)
    acc0 = tl.zeros((BM, BD), dtype=tl.float32)
    acc1 = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, 2 * BN):
        cols = start + 2 * tl.arange(0, BN)
        top0, sum0, acc0 = step(q, k_ptr, v_ptr, base, cols, top0, sum0, acc0, seq, dim, scale, BD)
        top1, sum1, acc1 = step(q, k_ptr, v_ptr, base, cols + 1, top1, sum1, acc1, seq, dim, scale, BD)
    top = tl.maximum(top0, top1)
    top = tl.where(top == -float("inf"), 0.0, top)
    part0, part1 = tl.exp(top0 - top), tl.exp(top1 - top)
    total = sum0 * part0 + sum1 * part1
    acc = acc0 * part0[:, None] + acc1 * part1[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, seq, dim, dim**-0.5, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
