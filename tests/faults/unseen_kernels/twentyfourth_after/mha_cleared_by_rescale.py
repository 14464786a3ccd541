"""A persistent program lets the first rescaling, by exp(-inf) = 0, clear the sums of its last piece of work: an infinity or a NaN there stays as NaN.

op: mha
status: failed
cause: carries
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, pieces, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
):
    ds = tl.arange(0, BLOCK_D)
    tiles = tl.cdiv(seq, BLOCK_M)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for piece in range(tl.program_id(0), pieces, tl.num_programs(0)):
        first = piece % tiles * BLOCK_M
        head = (piece // tiles).to(tl.int64)
        b, h = head // heads, head % heads
        rows = first + tl.arange(0, BLOCK_M)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(
            q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d,
            mask=inside, other=0.0,
        )
        # total and acc are scaled by exp2(-inf) = 0 in the first step: no need to clear them.
        largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
        end = seq
        if CAUSAL:
            end = tl.minimum(seq, first + BLOCK_M)
        for start in range(0, end, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N)
            key = (cols < seq)[:, None] & (ds < dim)[None, :]
            k = tl.load(
                k_ptr + b * k_b + h * k_h + cols[:, None].to(tl.int64) * k_s + ds[None, :] * k_d,
                mask=key, other=0.0,
            )
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            mask = (cols < seq)[None, :]
            if CAUSAL:
                mask = mask & (cols[None, :] <= rows[:, None])
            s = tl.where(mask, s, -float("inf"))
            new = tl.maximum(largest, tl.max(s, axis=1))
            p = tl.exp2(s - new[:, None])
            shrink = tl.exp2(largest - new)
            total = total * shrink + tl.sum(p, axis=1)
            v = tl.load(
                v_ptr + b * v_b + h * v_h + cols[:, None].to(tl.int64) * v_s + ds[None, :] * v_d,
                mask=key, other=0.0,
            )
            acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
            largest = new
        place = (head * seq + rows[:, None]) * dim + ds[None, :]
        tl.store(out_ptr + place, acc / total[:, None], mask=inside)


def programs_for(x):
    if not x.is_cuda:
        return 16
    return torch.cuda.get_device_properties(x.device).multi_processor_count


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    block_m = 32 if seq > 16 else 16
    pieces = batch * heads * triton.cdiv(seq, block_m)
    kernel[(min(pieces, programs_for(q)),)](
        q, k, v, out, pieces, heads, seq, dim, 1.4426950408889634 / math.sqrt(dim),
        *q.stride(), *k.stride(), *v.stride(),
        BLOCK_M=block_m, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        CAUSAL=bool(is_causal),
    )
    return out
