"""A persistent program begins a tile with the last tile's maximum: where that head had far larger scores, all weights vanish.

op: mha
status: failed
cause: persistence
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
PROGRAMS = 132  # of the H200's multiprocessors


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, tiles, everything, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    # Any bound of the scores does as the maximum: what it was goes on to the next tile, where it seldom has to grow.
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    for work in range(tl.program_id(0), everything, tl.num_programs(0)):
        head = (work // tiles).to(tl.int64)
        b, h = head // heads, head % heads
        first = work % tiles * BLOCK_M
        rows = first + tl.arange(0, BLOCK_M)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q_ptrs = q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d
        q = tl.load(q_ptrs, mask=inside, other=0.0)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        end = seq
        if CAUSAL:
            end = tl.minimum(seq, first + BLOCK_M)
        for start in range(0, end, BLOCK_N):
            at = (start + cols).to(tl.int64)
            there = (at < seq)[:, None] & (ds < dim)[None, :]
            k_ptrs = k_ptr + b * k_b + h * k_h + at[:, None] * k_s + ds[None, :] * k_d
            k = tl.load(k_ptrs, mask=there, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            mask = (at < seq)[None, :]
            if CAUSAL:
                mask = mask & (at[None, :] <= rows[:, None])
            s = tl.where(mask, s, -float("inf"))
            new = tl.maximum(largest, tl.max(s, axis=1))
            p = tl.exp2(s - new[:, None])
            shrink = tl.exp2(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            v_ptrs = v_ptr + b * v_b + h * v_h + at[:, None] * v_s + ds[None, :] * v_d
            v = tl.load(v_ptrs, mask=there, other=0.0)
            # float32 holds weights far below 1, a half type does not: the product is made in float32.
            acc = tl.dot(p, v.to(tl.float32), acc * shrink[:, None], input_precision="ieee")
            largest = new
        out_ptrs = out_ptr + (head * seq + rows[:, None]) * dim + ds[None, :]
        tl.store(out_ptrs, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M, BLOCK_N = (64, 32) if dim <= 128 else (32, 16)
        tiles = triton.cdiv(seq, BLOCK_M)
        everything = batch * heads * tiles
        kernel[(min(PROGRAMS, everything),)](
            q, k, v, out, tiles, everything, heads, seq, dim, dim**-0.5 * LOG2_E,
            *q.stride(), *k.stride(), *v.stride(), CAUSAL=bool(is_causal),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        )
    return out
