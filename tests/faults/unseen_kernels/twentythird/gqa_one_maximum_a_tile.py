"""The heads of a group are rows of one tile that keeps a single running maximum: a head far below another becomes 0 / 0.

op: gqa
status: failed
cause: shared_maximum
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, kv_heads, seq, dim, scale, tiles,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    tile = tl.program_id(0) % tiles
    both = (tl.program_id(0) // tiles).to(tl.int64)
    b, kv = both // kv_heads, both % kv_heads
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)  # position by position, the heads of a group side by side
    places = (rows // GROUP).to(tl.int64)
    heads = kv * GROUP + rows % GROUP
    ds = tl.arange(0, BLOCK_D)
    cols = tl.arange(0, BLOCK_N)
    inside = (places < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(
        q_ptr + b * q_b + heads[:, None] * q_h + places[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0
    )
    k_ptr += b * k_b + kv * k_h
    v_ptr += b * v_b + kv * v_h
    largest = -float("inf")  # of the tile: one number is cheaper than one a row
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, ((tile + 1) * BLOCK_M - 1) // GROUP + 1)
    for start in range(0, end, BLOCK_N):
        keys = (start + cols).to(tl.int64)
        k = tl.load(
            k_ptr + keys[None, :] * k_s + ds[:, None] * k_d, mask=(keys < seq)[None, :] & (ds < dim)[:, None], other=0.0
        )
        s = tl.dot(q, k, input_precision="ieee") * scale
        mask = (keys < seq)[None, :] & (places < seq)[:, None]
        if CAUSAL:
            mask = mask & (keys[None, :] <= places[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(tl.max(s, axis=1), axis=0))
        p = tl.exp2(s - new)
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + keys[:, None] * v_s + ds[None, :] * v_d, mask=(keys < seq)[:, None] & (ds < dim)[None, :], other=0.0
        )
        acc = tl.dot(p.to(v.dtype), v, acc * shrink, input_precision="ieee")
        largest = new
    out = acc / total[:, None]
    where = ((b * kv_heads * GROUP + heads) * seq + places)[:, None] * dim + ds[None, :]
    tl.store(out_ptr + where, out, mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    group = heads // kv_heads
    BLOCK_M, BLOCK_N = 64, 32
    tiles = triton.cdiv(seq * group, BLOCK_M)
    kernel[(tiles * batch * kv_heads,)](
        q, k, v, out, kv_heads, seq, dim, 1.4426950408889634 / dim**0.5, tiles,
        *q.stride(), *k.stride(), *v.stride(), GROUP=group, CAUSAL=bool(is_causal),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )
    return out
