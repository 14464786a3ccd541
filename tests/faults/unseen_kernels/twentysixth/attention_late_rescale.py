"""Sums are rescaled only when the maximum has grown by over 2 ** 20: float32 stands it, weights in float16 do not.

op: attention
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scores(q, k_ptr, start, seq, dim, k_s, k_d, scale, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    ds = tl.arange(0, BLOCK_D)
    cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
    k = tl.load(
        k_ptr + cols[None, :] * k_s + ds[:, None] * k_d,
        mask=(cols < seq)[None, :] & (ds < dim)[:, None], other=0.0,
    )
    s = tl.dot(q, k, input_precision="tf32x3") * scale
    return tl.where((cols < seq)[None, :], s, -float("inf"))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, SLACK: tl.constexpr,
):
    tiles = tl.cdiv(seq, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(
        q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d,
        mask=inside, other=0.0,
    )
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    # The first tile's maximum is the reference. Most rows never need another one.
    reference = tl.max(scores(q, k_ptr, 0, seq, dim, k_s, k_d, scale, BLOCK_N, BLOCK_D), axis=1)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        s = scores(q, k_ptr, start, seq, dim, k_s, k_d, scale, BLOCK_N, BLOCK_D)
        peak = tl.max(s, axis=1)
        if tl.max(peak - reference) > SLACK:  # seldom: rescale all rows of the tile
            new = tl.maximum(reference, peak)
            shrink = tl.exp2(reference - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            reference = new
        p = tl.exp2(s - reference[:, None])
        total += tl.sum(p, axis=1)
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        v = tl.load(
            v_ptr + cols[:, None] * v_s + ds[None, :] * v_d,
            mask=(cols < seq)[:, None] & (ds < dim)[None, :], other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="tf32x3")
    tl.store(
        out_ptr + head * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :],
        acc / total[:, None], mask=inside,
    )


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M = 32 if dim > 128 else 64
        attention_kernel[(triton.cdiv(seq, BLOCK_M) * batch * heads,)](
            q, k, v, out, heads, seq, dim, dim**-0.5 * 1.4426950408889634,
            *q.stride(), *k.stride(), *v.stride(), BLOCK_M=BLOCK_M, BLOCK_N=32,
            BLOCK_D=max(16, triton.next_power_of_2(dim)), SLACK=20.0, num_warps=4,
        )
    return out
