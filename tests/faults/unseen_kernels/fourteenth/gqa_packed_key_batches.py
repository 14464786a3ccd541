"""Key heads are numbered through all batches with the stride of a head: wrong when k and v are halves of one packed tensor and there are two batches.

op: gqa
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, k_head, k_row, v_head, v_row, seq, dim, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    base = head * seq * dim
    kv = head // GROUP
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, seq, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + kv * k_head + cols[:, None] * k_row + ds[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + kv * v_head + cols[:, None] * v_row + ds[None, :], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def rows_in_place(t):
    # A cache longer than seq needs no copy.
    return t if t.stride(3) == 1 and t.stride(1) >= t.stride(2) * t.shape[2] else t.contiguous()


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), rows_in_place(k), rows_in_place(v)
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, k.stride(1), k.stride(2), v.stride(1), v.stride(2), seq, dim, dim**-0.5,
        GROUP=heads // k.shape[1], CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
