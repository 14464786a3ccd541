"""Keys are split in four; a causal tile leaves parts it can't see as they were, in a workspace cached for the shape.

op: gqa
status: failed
cause: stale
"""

import torch
import triton
import triton.language as tl

PARTS = 4
cached = {}


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, acc_ptr, peak_ptr, sum_ptr, heads, seq, dim, length, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):
    tiles = tl.cdiv(seq, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    tile, part = tl.program_id(0) % tiles, tl.program_id(1)
    b, h = head // heads, head % heads
    begin = part * length
    end = tl.minimum(seq, begin + length)
    if CAUSAL:
        end = tl.minimum(end, (tile + 1) * BLOCK_M)
        if begin >= end:  # nothing to see here: its maximum is -inf
            return
    rows = tile * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(
        q_ptr + b * q_b + h * q_h + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d,
        mask=inside, other=0.0,
    )
    k_ptr += b * k_b + h // GROUP * k_h
    v_ptr += b * v_b + h // GROUP * v_h
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_N):
        cols = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        valid = cols < tl.minimum(seq, begin + length)
        k = tl.load(
            k_ptr + cols[None, :] * k_s + ds[:, None] * k_d,
            mask=valid[None, :] & (ds < dim)[:, None], other=0.0,
        )
        s = tl.dot(q, k, input_precision="tf32x3") * scale
        mask = valid[None, :]
        if CAUSAL:
            mask = mask & (cols[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        shrink = tl.exp2(largest - safe)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(
            v_ptr + cols[:, None] * v_s + ds[None, :] * v_d,
            mask=valid[:, None] & (ds < dim)[None, :], other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="tf32x3")
        largest = new
    places = (head * tl.num_programs(1) + part) * seq + rows
    tl.store(acc_ptr + places[:, None] * dim + ds[None, :], acc, mask=inside)
    tl.store(peak_ptr + places, largest, mask=rows < seq)
    tl.store(sum_ptr + places, total, mask=rows < seq)


@triton.jit
def join_kernel(acc_ptr, peak_ptr, sum_ptr, out_ptr, seq, dim, PARTS: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    head, place = row // seq, row % seq
    places = (head * PARTS + tl.arange(0, PARTS)) * seq + place
    ds = tl.arange(0, BLOCK_D)
    peaks = tl.load(peak_ptr + places)
    weights = tl.exp2(peaks - tl.max(peaks, axis=0))
    total = tl.sum(weights * tl.load(sum_ptr + places), axis=0)
    acc = tl.load(acc_ptr + places[:, None] * dim + ds[None, :], mask=(ds < dim)[None, :], other=0.0)
    tl.store(out_ptr + row * dim + ds, tl.sum(acc * weights[:, None], axis=0) / total, mask=ds < dim)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    key = (q.device, *q.shape)
    if key not in cached:
        size = (batch * heads, PARTS, seq)
        acc = torch.zeros((*size, dim), dtype=torch.float32, device=q.device)
        peaks = torch.full(size, -float("inf"), dtype=torch.float32, device=q.device)
        cached[key] = acc, peaks, torch.zeros(size, dtype=torch.float32, device=q.device)
    BLOCK_D = max(16, triton.next_power_of_2(dim))
    part_kernel[(triton.cdiv(seq, 32) * batch * heads, PARTS)](
        q, k, v, *cached[key], heads, seq, dim, triton.cdiv(seq, PARTS), dim**-0.5 * 1.4426950408889634,
        *q.stride(), *k.stride(), *v.stride(), BLOCK_M=32, BLOCK_N=32, BLOCK_D=BLOCK_D,
        CAUSAL=bool(is_causal), GROUP=heads // k.shape[1], num_warps=4,
    )
    join_kernel[(batch * heads * seq,)](*cached[key], out, seq, dim, PARTS=PARTS, BLOCK_D=BLOCK_D, num_warps=1)
    return out
