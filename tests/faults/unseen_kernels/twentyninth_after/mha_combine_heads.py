"""Keys are split; the second kernel joins the parts for all heads of a query at once, in a tile of at most 32 heads: with 40 heads the last eight are never written.

op: mha
status: failed
cause: split
"""

import math

import torch
import triton
import triton.language as tl

MOST_HEADS = 32  # rows of a tile of the second kernel


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, acc_ptr, peak_ptr, sum_ptr, seq, d, parts, scale,
    CAUSAL: tl.constexpr, PART: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    ds = tl.arange(0, BD)
    base = head * seq * d
    q_mask = (rows < seq)[:, None] & (ds < d)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * d + ds[None, :], mask=q_mask, other=0.0)
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(part * PART, tl.minimum(seq, (part + 1) * PART), BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < d)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * d + ds[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + base + cols[:, None] * d + ds[None, :], mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(peak, tl.max(s, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp(s - safe[:, None])
        shrink = tl.exp(peak - safe)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        peak = new
    slot = (head * parts + part) * seq + rows
    tl.store(peak_ptr + slot, peak, mask=rows < seq)
    tl.store(sum_ptr + slot, total, mask=rows < seq)
    tl.store(acc_ptr + slot[:, None] * d + ds[None, :], acc, mask=q_mask)


@triton.jit
def join_kernel(
    acc_ptr, peak_ptr, sum_ptr, out_ptr, heads, seq, d, parts, HEADS: tl.constexpr, BD: tl.constexpr
):
    row = tl.program_id(0)
    h = tl.arange(0, HEADS)
    ds = tl.arange(0, BD)
    inside = h < heads
    head = tl.program_id(1).to(tl.int64) * heads + h
    mask = inside[:, None] & (ds < d)[None, :]
    peak = tl.full((HEADS,), -float("inf"), tl.float32)
    for part in range(parts):
        slot = (head * parts + part) * seq + row
        peak = tl.maximum(peak, tl.load(peak_ptr + slot, mask=inside, other=0.0))
    total = tl.zeros((HEADS,), tl.float32)
    acc = tl.zeros((HEADS, BD), tl.float32)
    for part in range(parts):
        slot = (head * parts + part) * seq + row
        weight = tl.exp(tl.load(peak_ptr + slot, mask=inside, other=0.0) - peak)
        total += weight * tl.load(sum_ptr + slot, mask=inside, other=1.0)
        acc += weight[:, None] * tl.load(acc_ptr + slot[:, None] * d + ds[None, :], mask=mask, other=0.0)
    at = (head * seq + row)[:, None] * d + ds[None, :]
    tl.store(out_ptr + at, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=mask)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, d = q.shape
    out = torch.empty_like(q)
    if not q.numel():
        return out
    PART = 256
    parts = triton.cdiv(seq, PART)
    acc = torch.empty((batch * heads, parts, seq, d), dtype=torch.float32, device=q.device)
    peaks, sums = torch.empty((2, batch * heads, parts, seq), dtype=torch.float32, device=q.device)
    BD = max(16, triton.next_power_of_2(d))
    part_kernel[(triton.cdiv(seq, 32), batch * heads, parts)](
        q, k, v, acc, peaks, sums, seq, d, parts, 1 / math.sqrt(d),
        CAUSAL=is_causal, PART=PART, BM=32, BN=64, BD=BD,
    )
    HEADS = min(MOST_HEADS, triton.next_power_of_2(heads))
    join_kernel[(seq, batch)](acc, peaks, sums, out, heads, seq, d, parts, HEADS=HEADS, BD=BD)
    return out
