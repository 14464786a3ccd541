"""Parts of 128 or 512 keys; the combining kernel's block holds all of them.

op: attention
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def parts_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, sum_ptr, max_ptr, seq, n_keys, dim, scale, chunk, n_parts,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    part = tl.program_id(2)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    mask_q = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + head * seq * dim + rows[:, None] * dim + ds[None, :], mask=mask_q, other=0.0)
    q = q.to(tl.float32)
    base = head * n_keys * dim
    end = tl.minimum((part + 1) * chunk, n_keys)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for start in range(part * chunk, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < end)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + base + cols[:, None] * dim + ds[None, :], mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((cols < end)[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    place = (head * n_parts + part) * seq + rows
    tl.store(out_ptr + place[:, None] * dim + ds[None, :], acc / total[:, None], mask=mask_q)
    tl.store(sum_ptr + place, total, mask=rows < seq)
    tl.store(max_ptr + place, largest, mask=rows < seq)


@triton.jit
def combine_kernel(
    part_ptr, sum_ptr, max_ptr, out_ptr, seq, dim, n_parts, PARTS: tl.constexpr, BD: tl.constexpr
):
    row = tl.program_id(0) % seq
    head = (tl.program_id(0) // seq).to(tl.int64)
    parts = tl.arange(0, PARTS)
    ds = tl.arange(0, BD)
    place = (head * n_parts + parts) * seq + row
    largest = tl.load(max_ptr + place, mask=parts < n_parts, other=-float("inf"))
    total = tl.load(sum_ptr + place, mask=parts < n_parts, other=0.0)
    weight = total * tl.exp(largest - tl.max(largest, axis=0))
    weight = weight / tl.sum(weight, axis=0)
    mask = (parts < n_parts)[:, None] & (ds < dim)[None, :]
    values = tl.load(part_ptr + place[:, None] * dim + ds[None, :], mask=mask, other=0.0)
    out = tl.sum(values * weight[:, None], axis=0)
    tl.store(out_ptr + (head * seq + row) * dim + ds, out, mask=ds < dim)


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    n_keys = k.shape[2]
    out = torch.empty_like(q)
    BD = max(16, triton.next_power_of_2(dim))
    BM = 64 if BD <= 128 else 32
    chunk = 128 if batch * heads == 1 else 512
    n_parts = triton.cdiv(n_keys, chunk)
    places = (batch * heads, n_parts, seq)
    parts = torch.empty((*places, dim), dtype=torch.float32, device=q.device)
    sums, maxima = (torch.empty(places, dtype=torch.float32, device=q.device) for _ in range(2))
    parts_kernel[(batch * heads, triton.cdiv(seq, BM), n_parts)](
        q, k, v, parts, sums, maxima, seq, n_keys, dim, dim**-0.5, chunk, n_parts,
        BM=BM, BN=BM, BD=BD, num_stages=1,
    )
    combine_kernel[(batch * heads * seq,)](
        parts, sums, maxima, out, seq, dim, n_parts, PARTS=triton.next_power_of_2(n_parts), BD=BD
    )
    return out
