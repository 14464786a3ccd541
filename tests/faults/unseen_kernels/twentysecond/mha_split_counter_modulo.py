"""The counters of arrived splits are never reset but taken modulo the splits: after a shape with as many tiles and another number of splits they are out of step.

op: mha
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_counters = {}


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, acc_ptr, max_ptr, sum_ptr, count_ptr, seq, dim, scale, per,
    SPLITS: tl.constexpr, CAUSAL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    tiles = tl.cdiv(seq, BM)
    job = tl.program_id(0)
    split = tl.program_id(1)
    tile = job % tiles
    base = (job // tiles).to(tl.int64) * seq * dim
    lanes = tl.arange(0, BM)
    rows = tile * BM + lanes
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = min(seq, (split + 1) * per)
    if CAUSAL:
        end = min(end, (tile + 1) * BM)
    for start in range(split * per, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
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
    # The last split of a job to arrive joins the parts of all.
    slot = (job * SPLITS + split).to(tl.int64) * BM + lanes
    tl.store(max_ptr + slot, largest)
    tl.store(sum_ptr + slot, total)
    tl.store(acc_ptr + slot[:, None] * BD + ds[None, :], acc)
    tl.debug_barrier()
    before = tl.atomic_add(count_ptr + job, 1)
    if before % SPLITS == SPLITS - 1:
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        for other in range(SPLITS):
            slot = (job * SPLITS + other).to(tl.int64) * BM + lanes
            part = tl.load(max_ptr + slot, cache_modifier=".cg")
            new = tl.maximum(largest, part)
            safe = tl.where(new == -float("inf"), 0.0, new)
            own = tl.exp(largest - safe)
            theirs = tl.exp(part - safe)
            total = total * own + tl.load(sum_ptr + slot, cache_modifier=".cg") * theirs
            there = tl.load(acc_ptr + slot[:, None] * BD + ds[None, :], cache_modifier=".cg")
            acc = acc * own[:, None] + there * theirs[:, None]
            largest = new
        tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def counters(jobs, device):
    # Every call adds SPLITS to each counter: no need to clear them between calls.
    key = (jobs, device)
    if key not in _counters:
        _counters[key] = torch.zeros(jobs, dtype=torch.int32, device=device)
    return _counters[key]


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    jobs = batch * heads * triton.cdiv(seq, 64)
    splits = max(1, min(triton.cdiv(seq, 64), 16 // jobs))
    per = triton.cdiv(triton.cdiv(seq, 64), splits) * 64
    bd = max(16, triton.next_power_of_2(dim))
    parts = torch.empty((jobs, splits, 64, bd), dtype=torch.float32, device=q.device)
    largest = torch.empty((jobs, splits, 64), dtype=torch.float32, device=q.device)
    total = torch.empty_like(largest)
    out = torch.empty_like(q)
    kernel[(jobs, splits)](
        q, k, v, out, parts, largest, total, counters(jobs, q.device), seq, dim, dim**-0.5, per,
        SPLITS=splits, CAUSAL=bool(is_causal), BM=64, BN=64, BD=bd,
    )
    return out
