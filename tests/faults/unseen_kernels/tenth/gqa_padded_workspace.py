"""Padded copies live in saved buffers: after a head_dim of 96, one of 80 finds 16 old columns in q and k.

op: gqa
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_buffers = {}


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, kv_heads, seq, padded, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    q_base = tl.program_id(1).to(tl.int64) * padded * BD
    kv_base = (batch * kv_heads + head // (heads // kv_heads)).to(tl.int64) * padded * BD
    out_base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + q_base + rows[:, None] * BD + ds[None, :]).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(0, padded, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + kv_base + cols[:, None] * BD + ds[None, :]).to(tl.float32)
        v = tl.load(v_ptr + kv_base + cols[:, None] * BD + ds[None, :]).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
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
    tl.store(out_ptr + out_base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask)


def padded_copy(name, x, length, width):
    key = name, *x.shape[:2], length, width, x.dtype, x.device
    if key not in _buffers:
        _buffers[key] = torch.zeros((*x.shape[:2], length, width), dtype=x.dtype, device=x.device)
    buffer = _buffers[key]
    buffer[:, :, : x.shape[2], : x.shape[3]].copy_(x.detach())
    return buffer


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    length, width = triton.cdiv(seq, 32) * 32, max(16, triton.next_power_of_2(dim))
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    copies = (padded_copy(name, x, length, width) for name, x in (("q", q), ("k", k), ("v", v)))
    kernel[(length // 32, batch * heads)](
        *copies, out, heads, k.shape[1], seq, length, dim, dim**-0.5,
        CAUSAL=bool(is_causal), BM=32, BN=32, BD=width,
    )
    return out
