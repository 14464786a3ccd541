"""The keys are split over programs, each stores its log-sum in float32; a split that has no key for a row stores minus infinity.

op: mha
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, seq, dim, scale, length,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    base = head * seq * dim
    split = tl.program_id(2)
    first = split * length
    last = tl.minimum(first + length, seq)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(first, last, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < last)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < last)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        safe = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp(scores - safe[:, None])
        shrink = tl.exp(largest - safe)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    some = total > 0.0
    lse = tl.where(some, largest + tl.log(tl.where(some, total, 1.0)), -float("inf"))
    acc = acc / tl.where(some, total, 1.0)[:, None]
    slot = split * tl.num_programs(0) + head
    tl.store(lse_ptr + slot * seq + rows, lse, mask=rows < seq)
    tl.store(part_ptr + slot * seq * dim + rows[:, None] * dim + ds[None, :], acc, mask=inside)


@triton.jit
def join_kernel(
    part_ptr, lse_ptr, out_ptr, seq, dim, SPLITS: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr
):
    head = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    for split in range(SPLITS):
        slot = split * tl.num_programs(0) + head
        lse = tl.load(lse_ptr + slot * seq + rows, mask=rows < seq, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, lse)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for split in range(SPLITS):
        slot = split * tl.num_programs(0) + head
        lse = tl.load(lse_ptr + slot * seq + rows, mask=rows < seq, other=0.0).to(tl.float32)
        weight = tl.exp(lse - largest)
        part = tl.load(part_ptr + slot * seq * dim + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
        total += weight
        acc += weight[:, None] * part
    at = head * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    blocks = triton.cdiv(seq, 64)
    splits = 4 if seq >= 256 else 1
    length = triton.cdiv(blocks, splits) * 64
    out = torch.empty_like(q)
    part = torch.empty((splits, batch * heads, seq, dim), dtype=torch.float32, device=q.device)
    lse = torch.empty((splits, batch * heads, seq), dtype=torch.float32, device=q.device)
    block_d = max(16, triton.next_power_of_2(dim))
    tiles = triton.cdiv(seq, 64)
    partial_kernel[(batch * heads, tiles, splits)](
        q, k, v, part, lse, seq, dim, dim**-0.5, length, CAUSAL=is_causal, BM=64, BN=64, BD=block_d
    )
    join_kernel[(batch * heads, tiles)](part, lse, out, seq, dim, SPLITS=splits, BM=64, BD=block_d)
    return out
