"""Long sequences have their keys split in sixteen parts; a part without keys divides 0 by 0, and its weight of 0 keeps the NaN.

op: attention
status: failed
cause: shape
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, part_ptr, lse_ptr, seq, dim, scale, length,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head, part, n_heads = tl.program_id(1).to(tl.int64), tl.program_id(2), tl.num_programs(1)
    base = head * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(part * length, tl.minimum(part * length + length, seq), BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < seq)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    place = (part * n_heads + head) * seq
    tl.store(part_ptr + place * dim + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=row_mask)
    tl.store(lse_ptr + place + rows, largest + tl.log(total), mask=rows < seq)


@triton.jit
def join_kernel(part_ptr, lse_ptr, out_ptr, n_rows, dim, PARTS: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    ds = tl.arange(0, BD)
    lse = tl.load(lse_ptr + parts * n_rows + row)
    weight = tl.exp(lse - tl.max(lse, axis=0))
    values = tl.load(part_ptr + (parts[:, None] * n_rows + row) * dim + ds[None, :],
                     mask=(ds < dim)[None, :], other=0.0)
    out = tl.sum(values * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + row * dim + ds, out, mask=ds < dim)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    BM, BN, BD = 64, 32, max(16, triton.next_power_of_2(dim))
    parts = 16 if seq >= 512 and batch * heads < 8 else 1
    length = triton.cdiv(triton.cdiv(seq, parts), BN) * BN
    partial = torch.empty((parts, *q.shape), dtype=torch.float32, device=q.device)
    lse = torch.empty((parts, *q.shape[:-1]), dtype=torch.float32, device=q.device)
    part_kernel[(triton.cdiv(seq, BM), batch * heads, parts)](
        q, k, v, partial, lse, seq, dim, dim**-0.5, length, BM=BM, BN=BN, BD=BD
    )
    join_kernel[(batch * heads * seq,)](partial, lse, out, batch * heads * seq, dim, PARTS=parts, BD=BD)
    return out
