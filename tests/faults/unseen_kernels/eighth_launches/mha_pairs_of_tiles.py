"""Causal from 8 tiles of queries on: each program takes a tile from either end, and with an odd number of tiles none takes the middle one.

op: mha
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(
    q_ptr, k_ptr, v_ptr, out_ptr, base_q, base, first, seq, n_keys, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + base_q + rows[:, None] * dim + ds[None, :],
                mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = n_keys
    if CAUSAL:
        end = tl.minimum(first + BM, n_keys)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < n_keys)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < n_keys)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptr + base_q + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask)


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, n_keys, dim, scale, n_tiles, PAIRS: tl.constexpr,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    pid = tl.program_id(1)
    head = tl.program_id(0).to(tl.int64)
    base_q, base = head * seq * dim, head * n_keys * dim
    tile(q_ptr, k_ptr, v_ptr, out_ptr, base_q, base, pid * BM, seq, n_keys, dim, scale, CAUSAL, BM, BN, BD)
    if PAIRS:
        other = n_tiles - 1 - pid
        tile(q_ptr, k_ptr, v_ptr, out_ptr, base_q, base, other * BM, seq, n_keys, dim, scale, CAUSAL, BM, BN, BD)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    n_keys = k.shape[2]
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    BM = BN = 64 if BD <= 128 else 32
    n_tiles = triton.cdiv(seq, BM)
    # A long tile and a short one make programs of equal work.
    pairs = is_causal and n_tiles >= 8
    programs = n_tiles // 2 if pairs else n_tiles
    kernel[(batch * heads, programs)](
        q, k, v, out, seq, n_keys, dim, dim**-0.5, n_tiles,
        PAIRS=pairs, CAUSAL=is_causal, BM=BM, BN=BN, BD=BD, num_stages=1,
    )
    return out
