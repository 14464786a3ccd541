"""A tile holds all heads of a group, position by position; the causal end of its keys is a quotient rounded down.

op: gqa
status: failed
cause: rounding-of-bounds
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, kv_heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):
    tiles = tl.cdiv(seq * GROUP, BLOCK_M)
    pair = (tl.program_id(0) // tiles).to(tl.int64)
    b, kv_head = pair // kv_heads, pair % kv_heads
    tile = tl.program_id(0) % tiles
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    places = rows // GROUP  # of the sequence
    heads = kv_head * GROUP + rows % GROUP
    ds = tl.arange(0, BLOCK_D)
    inside = (places < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(
        q_ptr + b * q_b + heads[:, None] * q_h + places[:, None].to(tl.int64) * q_s + ds[None, :] * q_d,
        mask=inside, other=0.0,
    )
    k_ptr += b * k_b + kv_head * k_h
    v_ptr += b * v_b + kv_head * v_h
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = seq
    if CAUSAL:  # positions in the tiles up to this one, at least the first
        end = tl.minimum(seq, tl.maximum(1, (tile + 1) * BLOCK_M // GROUP))
    for start in range(0, end, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        k = tl.load(
            k_ptr + cols[None, :] * k_s + ds[:, None] * k_d,
            mask=(cols < seq)[None, :] & (ds < dim)[:, None], other=0.0,
        )
        s = tl.dot(q, k, input_precision="tf32x3") * scale
        mask = (cols < seq)[None, :]
        if CAUSAL:
            mask = mask & (cols[None, :] <= places[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + cols[:, None] * v_s + ds[None, :] * v_d,
            mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="tf32x3")
        largest = new
    spot = ((b * kv_heads * GROUP + heads) * seq + places) * dim
    tl.store(out_ptr + spot[:, None] + ds[None, :], acc / total[:, None], mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    kv_heads = k.shape[1]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        group = heads // kv_heads
        attention_kernel[(triton.cdiv(seq * group, 64) * batch * kv_heads,)](
            q, k, v, out, kv_heads, seq, dim, dim**-0.5 * 1.4426950408889634,
            *q.stride(), *k.stride(), *v.stride(), BLOCK_M=64, BLOCK_N=32,
            BLOCK_D=max(16, triton.next_power_of_2(dim)), CAUSAL=bool(is_causal), GROUP=group,
            num_warps=8 if dim > 128 else 4, num_stages=1 if dim > 128 else 2,
        )
    return out
