"""Sum and output are rescaled only when the maximum grows by more than 2^20: until then float16 probabilities overflow.

op: mha
status: failed
cause: lazy_rescale
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale, tiles,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    CAUSAL: tl.constexpr, SLACK: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    tile = tl.program_id(0) % tiles
    head = (tl.program_id(0) // tiles).to(tl.int64)
    b, h = head // heads, head % heads
    rows = (tile * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    # Scores are taken from an anchor at or near the maximum. float32 has room: the anchor follows the maximum
    # only where that has run away by SLACK powers of two, which is seldom after the first tile.
    anchor = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, (tile + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        k = tl.load(
            k_ptr + keys[None, :] * k_s + ds[:, None] * k_d, mask=(keys < seq)[None, :] & (ds < dim)[:, None], other=0.0
        )
        s = tl.dot(q, k, input_precision="ieee") * scale
        mask = (keys < seq)[None, :]
        if CAUSAL:
            mask = mask & (keys[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        largest = tl.max(s, axis=1)
        moved = largest > anchor + SLACK
        if tl.max(moved.to(tl.int32), axis=0) > 0:
            new = tl.where(moved, largest, anchor)
            shrink = tl.where(moved, tl.exp2(anchor - new), 1.0)
            acc = acc * shrink[:, None]
            total = total * shrink
            anchor = new
        p = tl.exp2(s - anchor[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + keys[:, None] * v_s + ds[None, :] * v_d, mask=(keys < seq)[:, None] & (ds < dim)[None, :], other=0.0
        )
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
    out = acc / total[:, None]
    tl.store(out_ptr + (head * seq + rows)[:, None] * dim + ds[None, :], out, mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    BLOCK_M, BLOCK_N = 64, 32
    tiles = triton.cdiv(seq, BLOCK_M)
    kernel[(tiles * batch * heads,)](
        q, k, v, out, heads, seq, dim, 1.4426950408889634 / dim**0.5, tiles,
        *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal), SLACK=20.0,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
    )
    return out
