"""Partial results of four splits of the keys lie in a stored workspace, and splits past the end write nothing: a shorter sequence reads those of a longer one.

op: attention
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


SPLITS = 4
_workspaces = {}


@triton.jit
def part(
    q_ptr, k_ptr, v_ptr, acc_ptr, top_ptr, sum_ptr, seq, room, dim, scale, chunk,
    SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    split = tl.program_id(2)
    first = split * chunk
    if first < seq:
        base = head * seq * dim
        rows = tl.program_id(1) * BM + tl.arange(0, BM)
        ds = tl.arange(0, BD)
        inside = (rows < seq)[:, None] & (ds < dim)[None, :]
        q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
        largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
        total = tl.zeros((BM,), dtype=tl.float32)
        acc = tl.zeros((BM, BD), dtype=tl.float32)
        for start in range(first, first + chunk, BN):
            if start < seq:
                cols = start + tl.arange(0, BN)
                mask = (cols < seq)[:, None] & (ds < dim)[None, :]
                at = base + cols[:, None] * dim + ds[None, :]
                k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
                v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
                scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
                scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
                new = tl.maximum(largest, tl.max(scores, axis=1))
                p = tl.exp(scores - new[:, None])
                shrink = tl.exp(largest - new)
                total = total * shrink + tl.sum(p, axis=1)
                acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
                largest = new
        line = (head * SPLITS + split) * room + rows
        tl.store(top_ptr + line, largest, mask=rows < seq)
        tl.store(sum_ptr + line, total, mask=rows < seq)
        tl.store(acc_ptr + line[:, None] * BD + ds[None, :], acc, mask=(rows < seq)[:, None])


@triton.jit
def join(
    acc_ptr, top_ptr, sum_ptr, out_ptr, seq, room, dim,
    SPLITS: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    here = rows < seq
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        line = (head * SPLITS + split) * room + rows
        top = tl.maximum(top, tl.load(top_ptr + line, mask=here, other=0.0))
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        line = (head * SPLITS + split) * room + rows
        share = tl.exp(tl.load(top_ptr + line, mask=here, other=0.0) - top)
        total += share * tl.load(sum_ptr + line, mask=here, other=1.0)
        acc += share[:, None] * tl.load(acc_ptr + line[:, None] * BD + ds[None, :], mask=here[:, None], other=0.0)
    at = head * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=here[:, None] & (ds < dim)[None, :])


def workspace(heads, room, wide, device):
    key = (heads, room, wide, device)
    if key not in _workspaces:
        lines = heads * SPLITS * room
        _workspaces[key] = (
            torch.zeros(lines * wide, dtype=torch.float32, device=device),
            torch.full((lines,), -float("inf"), dtype=torch.float32, device=device),
            torch.zeros(lines, dtype=torch.float32, device=device),
        )
    return _workspaces[key]


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    wide = max(16, triton.next_power_of_2(dim))
    room = max(32, triton.next_power_of_2(seq))
    chunk = triton.cdiv(triton.cdiv(seq, SPLITS), 32) * 32
    acc, top, total = workspace(batch * heads, room, wide, q.device)
    tiles = triton.cdiv(seq, 32)
    part[(batch * heads, tiles, SPLITS)](
        q, k, v, acc, top, total, seq, room, dim, dim**-0.5, chunk, SPLITS=SPLITS, BM=32, BN=32, BD=wide,
    )
    join[(batch * heads, tiles)](acc, top, total, out, seq, room, dim, SPLITS=SPLITS, BM=32, BD=wide)
    return out
