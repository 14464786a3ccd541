"""With a mask, the tiles of keys before the diagonal need none; heads over 128 have 32 queries and 64 keys a tile, and rounding up puts half a diagonal tile among those.

op: mha
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def step(q, k_ptr, v_ptr, base, start, rows, largest, total, acc, seq, dim, scale, MASK: tl.constexpr, CAUSAL: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    cols = start + tl.arange(0, BN)
    ds = tl.arange(0, BD)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    at = base + cols[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    if MASK:
        allowed = (cols < seq)[None, :]
        if CAUSAL:
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
    if CAUSAL:
        plain = tl.cdiv(first, BN) * BN
        end = tl.minimum(seq, first + BM)
    else:
        plain = seq // BN * BN
        end = seq
    for start in range(0, plain, BN):
        largest, total, acc = step(q, k_ptr, v_ptr, base, start, rows, largest, total, acc, seq, dim, scale, False, CAUSAL, BN, BD)
    for start in range(plain, end, BN):
        largest, total, acc = step(q, k_ptr, v_ptr, base, start, rows, largest, total, acc, seq, dim, scale, True, CAUSAL, BN, BD)
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    bm, bn = (64, 64) if dim <= 128 else (32, 64)
    kernel[(batch * heads, triton.cdiv(seq, bm))](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal,
        BM=bm, BN=bn, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
