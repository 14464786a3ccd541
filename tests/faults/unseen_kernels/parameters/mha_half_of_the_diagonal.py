"""With the mask, heads wider than 64 take tiles of 32 keys, but one of two on the diagonal.

op: mha
status: failed
cause: parameter
"""

import torch
import triton
import triton.language as tl


@triton.jit
def visit(
    q, k_ptr, v_ptr, base, start, rows, seq, dim, largest, total, acc,
    MASKED: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    cols = start + tl.arange(0, BN)
    ds = tl.arange(0, BD)
    mask = (cols < seq)[:, None] & (ds < dim)[None, :]
    places = base + cols[:, None] * dim + ds[None, :]
    k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee")
    is_visible = (cols < seq)[None, :]
    if MASKED:
        is_visible = is_visible & (cols[None, :] <= rows[:, None])
    scores = tl.where(is_visible, scores, -float("inf"))
    new = tl.maximum(largest, tl.max(scores, axis=1))
    p = tl.exp(scores - new[:, None])
    shrink = tl.exp(largest - new)
    total = total * shrink + tl.sum(p, axis=1)
    acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
    return new, total, acc


@triton.jit
def mha_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = base + rows[:, None] * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0).to(tl.float32) * scale
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    full = seq  # the keys that every query of the tile sees
    if CAUSAL:
        full = tl.program_id(0) * BM
    for start in range(0, full, BN):
        largest, total, acc = visit(
            q, k_ptr, v_ptr, base, start, rows, seq, dim, largest, total, acc, False, BN, BD
        )
    if CAUSAL:
        largest, total, acc = visit(
            q, k_ptr, v_ptr, base, full, rows, seq, dim, largest, total, acc, True, BN, BD
        )
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    BM, BN = (64, 64) if BD <= 64 else (64, 32)  # the wide ones don't fit otherwise
    mha_kernel[(triton.cdiv(seq, BM), batch * heads)](
        q, k, v, out, seq, dim, dim**-0.5, CAUSAL=is_causal, BM=BM, BN=BN, BD=BD
    )
    return out
