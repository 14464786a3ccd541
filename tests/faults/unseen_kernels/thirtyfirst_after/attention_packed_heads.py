"""Many short sequences share a tile; there the scale is that of the padded head_dim.

op: attention
status: failed
cause: scale
"""

import torch
import triton
import triton.language as tl

TILE = 64
SHORT = 16


@triton.jit
def flash_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, d, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    base = tl.program_id(1).to(tl.int64) * seq * d
    rows = tl.program_id(0) * M + tl.arange(0, M)
    dims = tl.arange(0, D)
    at = rows[:, None] * d + dims[None, :]
    inside = (rows < seq)[:, None] & (dims < d)[None, :]
    q = tl.load(q_ptr + base + at, mask=inside, other=0.0).to(tl.float32)
    m = tl.full((M,), -float("inf"), dtype=tl.float32)
    s = tl.zeros((M,), dtype=tl.float32)
    acc = tl.zeros((M, D), dtype=tl.float32)
    for start in range(0, seq, N):
        keys = start + tl.arange(0, N)
        there = keys[:, None] * d + dims[None, :]
        inside_tile = (keys < seq)[:, None] & (dims < d)[None, :]
        k = tl.load(k_ptr + base + there, mask=inside_tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + there, mask=inside_tile, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < seq)[None, :], scores, -float("inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        p = tl.exp(scores - m_new[:, None])
        turn = tl.exp(m - m_new)
        s = s * turn + tl.sum(p, axis=1)
        acc = acc * turn[:, None] + tl.dot(p, v, input_precision="ieee")
        m = m_new
    tl.store(out_ptr + base + at, acc / s[:, None], mask=inside)


@triton.jit
def packed_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, n_heads, seq, d,
    TILE: tl.constexpr, SEQ: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Compute TILE // SEQ heads as the diagonal blocks of one product."""
    scale: tl.constexpr = D**-0.5
    rows = tl.arange(0, TILE)
    head = tl.program_id(0) * (TILE // SEQ) + rows // SEQ
    place = rows % SEQ
    dims = tl.arange(0, D)
    real = (head < n_heads) & (place < seq)
    at = (head.to(tl.int64) * seq + place)[:, None] * d + dims[None, :]
    inside = real[:, None] & (dims < d)[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0).to(tl.float32)
    k = tl.load(k_ptr + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + at, mask=inside, other=0.0).to(tl.float32)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    same = (head[:, None] == head[None, :]) & (place < seq)[None, :]
    scores = tl.where(same, scores, -float("inf"))
    p = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    acc = tl.dot(p, v, input_precision="ieee")
    tl.store(out_ptr + at, acc / tl.sum(p, axis=1)[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, d = q.shape
    D = max(16, triton.next_power_of_2(d))
    if seq <= SHORT and batch * heads >= TILE // 2 and d <= 128:
        SEQ = triton.next_power_of_2(seq)
        grid = (triton.cdiv(batch * heads, TILE // SEQ),)
        packed_kernel[grid](q, k, v, out, batch * heads, seq, d, TILE=TILE, SEQ=SEQ, D=D)
    else:
        M, N = (64, 32) if D <= 128 else (16, 16)
        grid = (triton.cdiv(seq, M), batch * heads)
        flash_kernel[grid](q, k, v, out, seq, d, d**-0.5, M=M, N=N, D=D)
    return out
