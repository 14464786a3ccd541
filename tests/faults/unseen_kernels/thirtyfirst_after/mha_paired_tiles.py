"""Right: with a causal mask and a long sequence, a program takes a tile from either end, once the middle one.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl

LOG2E = 1.4426950408889634


@triton.jit
def one_tile(
    q_ptr, k_ptr, v_ptr, out_ptr, tile, seq, d, scale,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    rows = tile * M + tl.arange(0, M)
    dims = tl.arange(0, D)
    at = rows[:, None].to(tl.int64) * d + dims[None, :]
    inside = (rows < seq)[:, None] & (dims < d)[None, :]
    q = tl.load(q_ptr + at, mask=inside, other=0.0).to(tl.float32)
    m = tl.full((M,), -float("inf"), dtype=tl.float32)
    s = tl.zeros((M,), dtype=tl.float32)
    acc = tl.zeros((M, D), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * M)
    for start in range(0, end, N):
        keys = start + tl.arange(0, N)
        there = keys[:, None].to(tl.int64) * d + dims[None, :]
        inside_tile = (keys < seq)[:, None] & (dims < d)[None, :]
        k = tl.load(k_ptr + there, mask=inside_tile, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + there, mask=inside_tile, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (keys < seq)[None, :]
        if CAUSAL:
            visible = visible & (keys[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        # Key 0 is visible by all, so m is finite from the first block on.
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        p = tl.exp2(scores - m_new[:, None])
        turn = tl.exp2(m - m_new)
        s = s * turn + tl.sum(p, axis=1)
        acc = acc * turn[:, None] + tl.dot(p, v, input_precision="ieee")
        m = m_new
    tl.store(out_ptr + at, acc / s[:, None], mask=inside)


@triton.jit
def mha_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, d, n_tiles, scale, PAIRS: tl.constexpr,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(0).to(tl.int64) * seq * d
    q_ptr, k_ptr, v_ptr, out_ptr = q_ptr + base, k_ptr + base, v_ptr + base, out_ptr + base
    tile = tl.program_id(1)
    one_tile(q_ptr, k_ptr, v_ptr, out_ptr, tile, seq, d, scale, CAUSAL, M, N, D)
    if PAIRS:
        other = n_tiles - 1 - tile
        if other != tile:
            one_tile(q_ptr, k_ptr, v_ptr, out_ptr, other, seq, d, scale, CAUSAL, M, N, D)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    batch, heads, seq, d = q.shape
    D = max(16, triton.next_power_of_2(d))
    M, N = (64, 32) if D <= 128 else (16, 16)
    n_tiles = triton.cdiv(seq, M)
    pairs = bool(is_causal) and n_tiles >= 5 and (d <= 32 or batch * heads * n_tiles > 264)
    grid = (batch * heads, triton.cdiv(n_tiles, 2) if pairs else n_tiles)
    scale = d**-0.5 * LOG2E
    shape = {"M": M, "N": N, "D": D}
    causal = bool(is_causal)
    mha_kernel[grid](q, k, v, out, seq, d, n_tiles, scale, PAIRS=pairs, CAUSAL=causal, **shape)
    return out
