"""Past 1,024 keys these are split into parts; the parts' weights are exponentials of their log-sums without the largest subtracted.

op: attention
status: failed
cause: limit
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, logs_ptr, seq, dim, part, scale,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """Attention to the keys of one part; logs: log2 of the sum of the exponentials."""
    head, index = tl.program_id(1).to(tl.int64), tl.program_id(2)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    places = (head * seq + rows[:, None]) * dim + ds[None, :]
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    end = tl.minimum((index + 1) * part, seq)
    for start in range(index * part, end, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        keys = (head * seq + cols[:, None]) * dim + ds[None, :]
        mask = (cols < end)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + keys, mask=mask, other=0.0)
        v = tl.load(v_ptr + keys, mask=mask, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((cols < end)[None, :], s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    slot = index * tl.num_programs(1) + head
    tl.store(out_ptr + slot * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :],
             acc / total[:, None], mask=inside)
    tl.store(logs_ptr + slot * seq + rows, largest + tl.log2(total), mask=rows < seq)


@triton.jit
def join_kernel(parts_ptr, logs_ptr, out_ptr, rows, dim, PARTS: tl.constexpr, BLOCK: tl.constexpr,
                BLOCK_D: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ds = tl.arange(0, BLOCK_D)
    inside = (i < rows)[:, None] & (ds < dim)[None, :]
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    acc = tl.zeros((BLOCK, BLOCK_D), dtype=tl.float32)
    for index in tl.static_range(PARTS):
        # The sum of some hundred exponentials, not of one large score: float32 holds it.
        weight = tl.exp2(tl.load(logs_ptr + index * rows + i, mask=i < rows, other=0.0))
        part = tl.load(
            parts_ptr + (index * rows + i[:, None]) * dim + ds[None, :], mask=inside, other=0.0
        )
        total += weight
        acc += part * weight[:, None]
    tl.store(out_ptr + i[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    block_d = max(16, triton.next_power_of_2(dim))
    block = 64 if block_d <= 128 else 32
    scale = 1.4426950408889634 / math.sqrt(dim)
    parts = 4 if seq > 1024 and batch * heads <= 16 else 1  # few heads: more programs
    rows = batch * heads * seq
    logs = torch.empty((parts, rows), dtype=torch.float32, device=q.device)
    results = out
    if parts > 1:
        results = torch.empty((parts, rows, dim), dtype=torch.float32, device=q.device)
    part_kernel[(triton.cdiv(seq, block), batch * heads, parts)](
        q, k, v, results, logs, seq, dim, triton.cdiv(seq, parts), scale,
        BLOCK=block, BLOCK_D=block_d,
    )
    if parts > 1:
        join_kernel[(triton.cdiv(rows, 32),)](
            results, logs, out, rows, dim, PARTS=parts, BLOCK=32, BLOCK_D=block_d
        )
    return out
