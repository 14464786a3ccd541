"""The parts of a split over the keys are stored before the division, in q's dtype: in float16 large values become infinite.

op: gqa
status: failed
cause: overflow
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, part_ptr, stat_ptr, heads, kv_heads, seq, D, scale, length,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    kv = head // heads * kv_heads + head % heads // (heads // kv_heads)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < D)[None, :]
    q = tl.load(q_ptr + (head * seq + rows[:, None]) * D + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = tl.minimum(seq, (part + 1) * length)
    if CAUSAL:
        end = tl.minimum(end, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(part * length, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (cols < seq)[:, None] & (ds < D)[None, :]
        at = (kv * seq + cols[:, None]) * D + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0)
        v = tl.load(v_ptr + at, mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="tf32x3") * scale
        visible = (cols < seq)[None, :] & (rows >= 0)[:, None]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(s - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="tf32x3")
        largest = new
    # The division comes once, when the parts are joined. Half the traffic in a half type.
    at = (tl.num_programs(1) * part + head) * seq + rows
    tl.store(part_ptr + at[:, None] * D + ds[None, :], acc, mask=inside)
    tl.store(stat_ptr + 2 * at, largest, mask=rows < seq)
    tl.store(stat_ptr + 2 * at + 1, total, mask=rows < seq)


@triton.jit
def join_kernel(
    part_ptr, stat_ptr, out_ptr, n, D,
    PARTS: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    ds = tl.arange(0, BLOCK_D)
    inside = rows < n
    mask = inside[:, None] & (ds < D)[None, :]
    # The first part has key 0, which each query sees: its maximum is finite.
    top = tl.load(stat_ptr + 2 * rows, mask=inside, other=0.0)
    for part in range(1, PARTS):
        top = tl.maximum(top, tl.load(stat_ptr + 2 * (part * n + rows), mask=inside, other=0.0))
    total = tl.zeros((ROWS,), dtype=tl.float32)
    acc = tl.zeros((ROWS, BLOCK_D), dtype=tl.float32)
    for part in range(PARTS):
        at = part * n + rows
        weight = tl.exp2(tl.load(stat_ptr + 2 * at, mask=inside, other=0.0) - top)
        total += weight * tl.load(stat_ptr + 2 * at + 1, mask=inside, other=1.0)
        x = tl.load(part_ptr + at[:, None] * D + ds[None, :], mask=mask, other=0.0)
        acc += weight[:, None] * x.to(tl.float32)
    tl.store(out_ptr + rows[:, None] * D + ds[None, :], acc / total[:, None], mask=mask)


def triton_gqa(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    if q.numel() == 0:
        return out
    batch, heads, seq, D = q.shape
    n = batch * heads * seq
    parts = 1 if seq <= 64 else 2 if seq <= 128 else 4
    length = triton.cdiv(triton.cdiv(seq, parts), 32) * 32
    part = torch.empty((parts, n, D), dtype=q.dtype, device=q.device)
    stats = torch.empty((parts, n, 2), dtype=torch.float32, device=q.device)
    BLOCK_D = max(16, triton.next_power_of_2(D))
    part_kernel[(triton.cdiv(seq, 32), batch * heads, parts)](
        q, k, v, part, stats, heads, k.shape[1], seq, D, 1.4426950408889634 / math.sqrt(D), length,
        CAUSAL=bool(is_causal), BLOCK_M=32, BLOCK_N=32, BLOCK_D=BLOCK_D,
    )
    join_kernel[(triton.cdiv(n, 32),)](
        part, stats, out, n, D, PARTS=parts, ROWS=32, BLOCK_D=BLOCK_D
    )
    return out
