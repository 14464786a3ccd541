"""The keys are split over programs; a second kernel joins maximum, sum and output of the parts.

op: attention
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    acc_ptr,
    max_ptr,
    sum_ptr,
    seq,
    dim,
    scale,
    part_keys,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    rows, ds = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    part, head = tl.program_id(1), tl.program_id(2).to(tl.int64)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    base = head * seq * dim
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(part * part_keys, tl.minimum((part + 1) * part_keys, seq), BN):
        keys = start + tl.arange(0, BN)
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + base + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p, shrink = tl.exp(s - new[:, None]), tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    slot = (head * tl.num_programs(1) + part) * seq + rows
    tl.store(max_ptr + slot, largest, mask=rows < seq)
    tl.store(sum_ptr + slot, total, mask=rows < seq)
    tl.store(acc_ptr + slot[:, None] * dim + ds[None, :], acc, mask=inside)


@triton.jit
def join_kernel(
    acc_ptr, max_ptr, sum_ptr, out_ptr, seq, dim, PARTS: tl.constexpr, BD: tl.constexpr
):
    row, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    ds = tl.arange(0, BD)
    top = -float("inf")
    for part in tl.static_range(PARTS):
        top = tl.maximum(top, tl.load(max_ptr + (head * PARTS + part) * seq + row))
    total = 0.0
    acc = tl.zeros((BD,), tl.float32)
    for part in tl.static_range(PARTS):
        slot = (head * PARTS + part) * seq + row
        weight = tl.exp(tl.load(max_ptr + slot) - top)
        total += tl.load(sum_ptr + slot) * weight
        acc += tl.load(acc_ptr + slot * dim + ds, mask=ds < dim, other=0.0) * weight
    tl.store(out_ptr + (head * seq + row) * dim + ds, acc / total, mask=ds < dim)


def triton_attention(q, k, v):
    q, k, v = (t.contiguous() for t in (q, k, v))
    batch, heads, seq, dim = q.shape
    part_keys = 128 if seq <= 512 else 1024
    parts = triton.cdiv(seq, part_keys)
    stats = torch.empty((2, batch * heads, parts, seq), dtype=torch.float32, device=q.device)
    acc = torch.empty((batch * heads, parts, seq, dim), dtype=torch.float32, device=q.device)
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    part_kernel[(triton.cdiv(seq, 64), parts, batch * heads)](
        q, k, v, acc, stats[0], stats[1], seq, dim, dim**-0.5, part_keys, BM=64, BN=64, BD=BD
    )
    join_kernel[(seq, batch * heads)](acc, stats[0], stats[1], out, seq, dim, PARTS=parts, BD=BD)
    return out
