"""Right: with the mask a program takes two tiles of queries, a short and a long one, and goes backwards from the diagonal.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale, tiles,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    q_ptr += b * q_b + h * q_h
    k_ptr += b * k_b + h * k_h
    v_ptr += b * v_b + h * v_h
    tile = tl.program_id(1)
    step = tl.maximum(tiles - 1 - 2 * tile, 1)
    # Tile i, and tiles - 1 - i unless it is the same one: together they see as many keys as any other pair.
    for place in range(tile, tiles - tile, step):
        first = place * BLOCK_M
        rows = first + tl.arange(0, BLOCK_M)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(q_ptr + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
        end = seq
        if CAUSAL:
            end = tl.minimum(seq, first + BLOCK_M)
        largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        # The keys end where the queries do, and their first tile is cut at zero.
        for back in range(0, end, BLOCK_N):
            at = (end - BLOCK_N - back + cols).to(tl.int64)
            there = (at >= 0)[:, None] & (ds < dim)[None, :]
            k = tl.load(k_ptr + at[:, None] * k_s + ds[None, :] * k_d, mask=there, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            mask = (at >= 0)[None, :]
            if CAUSAL:
                mask = mask & (at[None, :] <= rows[:, None])
            s = tl.where(mask, s, -float("inf"))
            new = tl.maximum(largest, tl.max(s, axis=1))
            # The first queries of a tile see none of the last keys: nothing minus nothing is no number.
            shift = tl.where(new == -float("inf"), 0.0, new)
            p = tl.exp2(s - shift[:, None])
            shrink = tl.exp2(largest - shift)
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(v_ptr + at[:, None] * v_s + ds[None, :] * v_d, mask=there, other=0.0)
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
            largest = new
        out_ptrs = out_ptr + (head * seq + rows[:, None]) * dim + ds[None, :]
        tl.store(out_ptrs, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M, BLOCK_N = (64, 16) if dim <= 128 else (32, 16)
        tiles = triton.cdiv(seq, BLOCK_M)
        kernel[(batch * heads, triton.cdiv(tiles, 2))](
            q, k, v, out, heads, seq, dim, dim**-0.5 * LOG2_E, tiles,
            *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
