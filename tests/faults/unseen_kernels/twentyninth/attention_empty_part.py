"""Keys are split into parts of whole tiles: for 513 to 576 keys the fourth part has none, and its output, 0 / 0, is added with weight 0.

op: attention
status: failed
cause: split
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def wide(x):
    """bfloat16 as float32: exact, and older devices and the interpreter have no product of it."""
    if x.dtype == tl.bfloat16:
        x = x.to(tl.float32)
    return x


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, seq, dim, length, scale, heads,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head, part = tl.program_id(1).to(tl.int64), tl.program_id(2)
    base = head * seq * dim
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = wide(tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0))
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(part * length, tl.minimum(seq, part * length + length), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        at = base + cols[:, None] * dim + ds[None, :]
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = wide(tl.load(k_ptr + at, mask=mask, other=0.0))
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = wide(tl.load(v_ptr + at, mask=mask, other=0.0))
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    place = part * heads + head
    tl.store(lse_ptr + place * seq + rows, largest + tl.log2(total), mask=rows < seq)
    at = place * seq * dim + rows[:, None] * dim + ds[None, :]
    tl.store(out_ptr + at, acc / total[:, None], mask=inside)


@triton.jit
def merge_kernel(outs_ptr, lse_ptr, out_ptr, rows, dim, parts, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    ds = tl.arange(0, BLOCK_D)
    inside = (at < rows)[:, None] & (ds < dim)[None, :]
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    for part in range(parts):
        largest = tl.maximum(largest, tl.load(lse_ptr + part * rows + at, mask=at < rows, other=0.0))
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for part in range(parts):
        share = tl.exp2(tl.load(lse_ptr + part * rows + at, mask=at < rows, other=0.0) - largest)
        places = (part * rows + at[:, None]) * dim + ds[None, :]
        acc += share[:, None] * tl.load(outs_ptr + places, mask=inside, other=0.0)
        total += share
    tl.store(out_ptr + at[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty_like(q)
    if not q.numel():
        return out
    (batch, heads, seq, dim), device = q.shape, q.device
    heads *= batch
    tiles = triton.cdiv(seq, 64)
    # Few tiles of queries leave multiprocessors idle: split the keys.
    parts = 4 if tiles >= 8 and heads * tiles <= 132 else 1
    length = triton.cdiv(tiles, parts) * 64
    BLOCK_D = max(16, triton.next_power_of_2(dim))
    outs = torch.empty((parts, heads, seq, dim), dtype=torch.float32, device=device)
    lse = torch.empty((parts, heads, seq), dtype=torch.float32, device=device)
    part_kernel[(tiles, heads, parts)](
        q, k, v, outs, lse, seq, dim, length, LOG2_E / dim**0.5, heads,
        BLOCK_M=64, BLOCK_N=64, BLOCK_D=BLOCK_D, num_stages=1,
    )
    rows = heads * seq
    merge_kernel[(triton.cdiv(rows, 64),)](outs, lse, out, rows, dim, parts, BLOCK_M=64, BLOCK_D=BLOCK_D)
    return out
