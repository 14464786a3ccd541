"""Keys are split into rounded parts; a part that gets none divides 0 by 0, which a weight of 0 keeps as NaN.

op: attention
status: failed
cause: wrong_fill
round: fourth
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, part_ptr, largest_ptr, total_ptr, seq, dim, per_part, n_parts, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + (head * seq + rows[:, None]) * dim + ds[None, :], mask=row_mask, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(part * per_part, tl.minimum(seq, (part + 1) * per_part), BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = (head * seq + cols[:, None]) * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    line = (head * n_parts + part) * seq + rows
    tl.store(largest_ptr + line, largest, mask=rows < seq)
    tl.store(total_ptr + line, total, mask=rows < seq)
    tl.store(part_ptr + line[:, None] * dim + ds[None, :], acc / total[:, None], mask=row_mask)


@triton.jit
def join_kernel(
    part_ptr, largest_ptr, total_ptr, out_ptr, seq, dim, n_parts,
    PARTS: tl.constexpr, BD: tl.constexpr,
):
    head, row = tl.program_id(1).to(tl.int64), tl.program_id(0)
    parts, ds = tl.arange(0, PARTS), tl.arange(0, BD)
    line = (head * n_parts + parts) * seq + row
    largest = tl.load(largest_ptr + line, mask=parts < n_parts, other=-float("inf"))
    total = tl.load(total_ptr + line, mask=parts < n_parts, other=0.0)
    weight = tl.exp(largest - tl.max(largest, axis=0)) * total
    acc = tl.load(part_ptr + line[:, None] * dim + ds[None, :],
                  mask=(parts < n_parts)[:, None] & (ds < dim)[None, :], other=0.0)
    out = tl.sum(acc * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + (head * seq + row) * dim + ds, out, mask=ds < dim)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    n_parts = min(4, triton.cdiv(seq, 64))
    per_part = triton.cdiv(triton.cdiv(seq, n_parts), 32) * 32
    sizes, f32 = (batch * heads, n_parts, seq), {"dtype": torch.float32, "device": q.device}
    parts = torch.empty((*sizes, dim), **f32)
    largest, total = torch.empty(sizes, **f32), torch.empty(sizes, **f32)
    part_kernel[(triton.cdiv(seq, 64), batch * heads, n_parts)](
        q, k, v, parts, largest, total, seq, dim, per_part, n_parts, dim**-0.5,
        BM=64, BN=32, BD=BD,
    )
    join_kernel[(seq, batch * heads)](
        parts, largest, total, out, seq, dim, n_parts, PARTS=4, BD=BD
    )
    return out
