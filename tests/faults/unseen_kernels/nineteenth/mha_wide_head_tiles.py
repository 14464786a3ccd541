"""Heads wider than 128 take tiles of 16 queries by 32 keys, but the loop before the diagonal expects tiles of queries that those of keys divide: keys count twice and without the mask.

op: mha
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def step(q, k_ptr, v_ptr, base, start, rows, ds, seq, dim, scale, largest, total, acc,
         MASK: tl.constexpr, BN: tl.constexpr):
    cols = start + tl.arange(0, BN)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    at = base + cols[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    allowed = (cols < seq)[None, :]
    if MASK:
        allowed = allowed & (cols[None, :] <= rows[:, None])
    scores = tl.where(allowed, scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, axis=1))
    p = tl.exp(scores - new[:, None])
    shrink = tl.exp(largest - new)
    total = total * shrink + tl.sum(p, axis=1)
    acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
    return new, total, acc


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    first = tl.program_id(1) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = first
    for start in range(0, end, BN):  # before the diagonal: no mask
        largest, total, acc = step(
            q, k_ptr, v_ptr, base, start, rows, ds, seq, dim, scale, largest, total, acc, False, BN
        )
    if CAUSAL:
        for start in range(first, tl.minimum(first + BM, seq), BN):  # on the diagonal
            largest, total, acc = step(
                q, k_ptr, v_ptr, base, start, rows, ds, seq, dim, scale, largest, total, acc, True, BN
            )
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    bm = 64 if dim <= 128 else 16  # a wide tile of queries would spill
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal,
        BM=bm, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
